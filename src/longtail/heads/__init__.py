"""Heads: from features to logits, each of which says what these carry."""

from longtail.heads.cosine import CausalNorm as CausalNorm
from longtail.heads.cosine import Cosine as Cosine
from longtail.heads.experts import Experts as Experts
from longtail.heads.generative import Generative as Generative
from longtail.heads.head import Head as Head
from longtail.heads.head import LinearHead as LinearHead
from longtail.heads.head import SGDConfig as SGDConfig
from longtail.heads.linear import LearnableScale as LearnableScale
from longtail.heads.linear import Linear as Linear
from longtail.heads.metric_ncm import MetricNCM as MetricNCM
from longtail.heads.moments import ClassMoments as ClassMoments
from longtail.heads.moments import MomentSums as MomentSums
from longtail.heads.moments import class_moments as class_moments
from longtail.heads.nearest_class_mean import LearnedNCM as LearnedNCM
from longtail.heads.nearest_class_mean import MultiNCM as MultiNCM
from longtail.heads.nearest_class_mean import NearestClassMean as NearestClassMean
from longtail.heads.nearest_class_mean import nearest_linear as nearest_linear
from longtail.heads.offset import EmpiricalOffset as EmpiricalOffset
from longtail.heads.offset import EstimatedOffset as EstimatedOffset
from longtail.heads.weight_norm import TauNorm as TauNorm
from longtail.heads.weight_norm import WeightVectorNorm as WeightVectorNorm
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals())
