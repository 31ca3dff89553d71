"""Labelled images: in memory or on disk, from folders, lists and archives; long-tailed cuts."""

from longtail.data.images.arrays import ImageArrays as ImageArrays
from longtail.data.images.checking import BrokenImage as BrokenImage
from longtail.data.images.checking import check_images as check_images
from longtail.data.images.cifar import cifar_long_tailed as cifar_long_tailed
from longtail.data.images.cifar import download_cifar as download_cifar
from longtail.data.images.cifar import read_cifar as read_cifar
from longtail.data.images.files import ImageFiles as ImageFiles
from longtail.data.images.folders import read_image_folder as read_image_folder
from longtail.data.images.hold_out import hold_out as hold_out
from longtail.data.images.labelled import LabelledImages as LabelledImages
from longtail.data.images.labels import labels_of as labels_of
from longtail.data.images.lists import read_image_list as read_image_list
from longtail.data.images.npz import read_image_npz as read_image_npz
from longtail.data.images.split_reading import read_image_splits as read_image_splits
from longtail.data.images.splits import ImageSplits as ImageSplits
from longtail.data.images.splits import hold_out_validation as hold_out_validation
from longtail.data.images.splits import long_tailed_images as long_tailed_images
