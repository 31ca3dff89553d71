"""CIFAR-10, CIFAR-100 and their long-tailed cuts."""

from longtail.data.images.cifar.download import download_cifar as download_cifar
from longtail.data.images.cifar.long_tailed import cifar_long_tailed as cifar_long_tailed
from longtail.data.images.cifar.reading import read_cifar as read_cifar
