"""Labelled images, long-tailed cuts of them, samplers that say their prior, augmentation."""

from longtail.images import augment as augment
from longtail.images.cifar import cifar_long_tailed as cifar_long_tailed
from longtail.images.cifar import read_cifar as read_cifar
from longtail.images.cifar_files import download_cifar as download_cifar
from longtail.images.folders import read_image_folder as read_image_folder
from longtail.images.folders import read_image_npz as read_image_npz
from longtail.images.folders import read_image_splits as read_image_splits
from longtail.images.folders import read_image_tree as read_image_tree
from longtail.images.labelled import BrokenImage as BrokenImage
from longtail.images.labelled import ImageArrays as ImageArrays
from longtail.images.labelled import ImageFiles as ImageFiles
from longtail.images.labelled import LabelledImages as LabelledImages
from longtail.images.labelled import check_images as check_images
from longtail.images.labelled import labels_of as labels_of
from longtail.images.lists import read_image_list as read_image_list
from longtail.images.lists import write_image_list as write_image_list
from longtail.images.samplers import SAMPLERS as SAMPLERS
from longtail.images.samplers import ClassBalancedSampler as ClassBalancedSampler
from longtail.images.samplers import ClassSampler as ClassSampler
from longtail.images.samplers import EffectiveNumberSampler as EffectiveNumberSampler
from longtail.images.samplers import InstanceSampler as InstanceSampler
from longtail.images.samplers import MPerClassSampler as MPerClassSampler
from longtail.images.samplers import ProgressiveSampler as ProgressiveSampler
from longtail.images.samplers import ReversedSampler as ReversedSampler
from longtail.images.samplers import SquareRootSampler as SquareRootSampler
from longtail.images.splits import ImageSplits as ImageSplits
from longtail.images.splits import long_tailed_images as long_tailed_images
from longtail.images.splits import split_validation as split_validation
from longtail.images.splits import sun397_long_tailed as sun397_long_tailed
from longtail.images.splits import with_validation as with_validation
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals(), "augment")
