"""Training from images: one loop on torch, with checkpoints, on one process or several."""

from longtail.engine.training.image_source import FixedSize as FixedSize
from longtail.engine.training.loop import EpochEnd as EpochEnd
from longtail.engine.training.loop import StepEnd as StepEnd
from longtail.engine.training.model import Model as Model
from longtail.engine.training.model import Outputs as Outputs
from longtail.engine.training.model import predict as predict
from longtail.engine.training.options import EpochSchedule as EpochSchedule
from longtail.engine.training.options import TrainingOptions as TrainingOptions
from longtail.engine.training.process_group import Processes as Processes
from longtail.engine.training.process_group import processes as processes
from longtail.engine.training.train import Trained as Trained
from longtail.engine.training.train import train as train
