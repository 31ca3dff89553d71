"""Labelled images: in memory or on disk, from folders, lists and archives; long-tailed cuts."""

from longtail.images.cifar import cifar_long_tailed as cifar_long_tailed
from longtail.images.cifar import read_cifar as read_cifar
from longtail.images.cifar_files import download_cifar as download_cifar
from longtail.images.folders import read_image_folder as read_image_folder
from longtail.images.folders import read_image_npz as read_image_npz
from longtail.images.folders import read_image_splits as read_image_splits
from longtail.images.labelled import BrokenImage as BrokenImage
from longtail.images.labelled import ImageArrays as ImageArrays
from longtail.images.labelled import ImageFiles as ImageFiles
from longtail.images.labelled import LabelledImages as LabelledImages
from longtail.images.labelled import check_images as check_images
from longtail.images.labels import labels_of as labels_of
from longtail.images.lists import read_image_list as read_image_list
from longtail.images.splits import ImageSplits as ImageSplits
from longtail.images.splits import hold_out as hold_out
from longtail.images.splits import hold_out_validation as hold_out_validation
from longtail.images.splits import long_tailed_images as long_tailed_images
