"""Images: samplers that say what prior their batches follow, and augmentation of whole batches."""

from longtail.images import augment as augment
from longtail.images.class_sampler import ClassSampler as ClassSampler
from longtail.images.samplers import SAMPLERS as SAMPLERS
from longtail.images.samplers import ClassBalancedSampler as ClassBalancedSampler
from longtail.images.samplers import EffectiveNumberSampler as EffectiveNumberSampler
from longtail.images.samplers import InstanceSampler as InstanceSampler
from longtail.images.samplers import MPerClassSampler as MPerClassSampler
from longtail.images.samplers import ProgressiveSampler as ProgressiveSampler
from longtail.images.samplers import ReversedSampler as ReversedSampler
from longtail.images.samplers import SquareRootSampler as SquareRootSampler
