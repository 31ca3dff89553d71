"""Training: heads on features that were computed once."""

from longtail.engine.feature_rows import FeatureRows as FeatureRows
from longtail.engine.fit_head import fit_head as fit_head
from longtail.engine.head_file import load_head as load_head
from longtail.engine.head_file import save_head as save_head
from longtail.engine.head_sgd import EpochDone as EpochDone
from longtail.engine.linear import fit_linear as fit_linear
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals())
