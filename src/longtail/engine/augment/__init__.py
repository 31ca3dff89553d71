"""Augmentation of whole batches, on tensors, from a generator that is given."""

from longtail.engine.augment.augmentation import Augmentation as Augmentation
from longtail.engine.augment.augmentation import Chain as Chain
from longtail.engine.augment.autoaugment import AutoAugment as AutoAugment
from longtail.engine.augment.color_jitter import ColorJitter as ColorJitter
from longtail.engine.augment.crop import RandomCrop as RandomCrop
from longtail.engine.augment.cutout import Cutout as Cutout
from longtail.engine.augment.flip import Flip as Flip
from longtail.engine.augment.mixup import Mixup as Mixup
from longtail.engine.augment.normalize import CIFAR_MEAN as CIFAR_MEAN
from longtail.engine.augment.normalize import CIFAR_STD as CIFAR_STD
from longtail.engine.augment.normalize import Normalize as Normalize
from longtail.engine.augment.normalize import channel_statistics as channel_statistics
