"""Networks that turn inputs into features; a head of `longtail.heads` follows them."""

from longtail.engine.backbones.backbone import Backbone as Backbone
from longtail.engine.backbones.backbone import mlp as mlp
from longtail.engine.backbones.backbone import small_cnn as small_cnn
from longtail.engine.backbones.library import timm_backbone as timm_backbone
from longtail.engine.backbones.library import torchvision_backbone as torchvision_backbone
from longtail.engine.backbones.resnet32 import resnet32 as resnet32
from longtail.engine.backbones.resnet32 import resnet32_experts as resnet32_experts
