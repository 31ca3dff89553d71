"""Augmentation of whole batches, on tensors, from a generator that is given."""

from longtail.images.augment.augmentation import Augmentation as Augmentation
from longtail.images.augment.augmentation import Chain as Chain
from longtail.images.augment.augmentation import ColorJitter as ColorJitter
from longtail.images.augment.augmentation import Cutout as Cutout
from longtail.images.augment.augmentation import Flip as Flip
from longtail.images.augment.augmentation import Mixup as Mixup
from longtail.images.augment.augmentation import RandomCrop as RandomCrop
from longtail.images.augment.autoaugment import AutoAugment as AutoAugment
from longtail.images.augment.normalize import CIFAR_MEAN as CIFAR_MEAN
from longtail.images.augment.normalize import CIFAR_STD as CIFAR_STD
from longtail.images.augment.normalize import Normalize as Normalize
from longtail.images.augment.normalize import channel_statistics as channel_statistics
