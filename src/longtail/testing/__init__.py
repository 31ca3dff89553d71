"""Exact worlds and contract checks, for longtail's own methods and for yours."""

from longtail.public_names import public_names
from longtail.testing.binary_checks import BINARY_CHECKS as BINARY_CHECKS
from longtail.testing.binary_checks import check_binary_loss as check_binary_loss
from longtail.testing.binary_checks import check_carried_odds as check_carried_odds
from longtail.testing.contract import ContractError as ContractError
from longtail.testing.contract import check_adjuster as check_adjuster
from longtail.testing.contract import contract_targets as contract_targets
from longtail.testing.decision_checks import check_decisions as check_decisions
from longtail.testing.decision_checks import check_sets as check_sets
from longtail.testing.head_loss_checks import HEAD_LOSS_CHECKS as HEAD_LOSS_CHECKS
from longtail.testing.head_loss_checks import check_head_carried as check_head_carried
from longtail.testing.head_loss_checks import check_head_loss as check_head_loss
from longtail.testing.label_world import LabelWorld as LabelWorld
from longtail.testing.loss_checks import LOSS_CHECKS as LOSS_CHECKS
from longtail.testing.loss_checks import check_carried as check_carried
from longtail.testing.loss_checks import check_loss as check_loss
from longtail.testing.world import FiniteWorld as FiniteWorld


def __dir__() -> list[str]:
    return public_names(globals())
