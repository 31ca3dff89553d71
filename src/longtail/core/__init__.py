"""The values everything else is made of: priors, labels and groups, retarget, Scores."""

from longtail.core.carried import measure_carried as measure_carried
from longtail.core.label_odds import LabelOdds as LabelOdds
from longtail.core.label_odds import LabelOddsLike as LabelOddsLike
from longtail.core.label_scores import LabelScores as LabelScores
from longtail.core.labels import class_counts as class_counts
from longtail.core.labels import shot_groups as shot_groups
from longtail.core.measured_odds import measure_odds as measure_odds
from longtail.core.prior import Prior as Prior
from longtail.core.prior import PriorLike as PriorLike
from longtail.core.retarget import UnknownPriorError as UnknownPriorError
from longtail.core.retarget import retarget as retarget
from longtail.core.scores import Scores as Scores
from longtail.group_edges import GroupEdges as GroupEdges
from longtail.group_edges import GroupsLike as GroupsLike
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals())
