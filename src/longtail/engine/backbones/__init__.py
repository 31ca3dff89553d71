"""Networks that turn inputs into features; a head of `longtail.heads` follows them."""

from longtail.engine.backbones.backbone import MLP as MLP
from longtail.engine.backbones.backbone import Backbone as Backbone
from longtail.engine.backbones.backbone import SmallCNN as SmallCNN
from longtail.engine.backbones.library import timm_backbone as timm_backbone
from longtail.engine.backbones.library import torchvision_backbone as torchvision_backbone
from longtail.engine.backbones.resnet32 import ResNet32 as ResNet32
from longtail.engine.backbones.resnet32 import ResNet32Experts as ResNet32Experts
