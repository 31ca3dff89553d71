"""Exact worlds and contract checks, for longtail's own methods and for yours."""

from longtail.public_names import public_names
from longtail.testing.contract import ContractError as ContractError
from longtail.testing.contract import check_adjuster as check_adjuster
from longtail.testing.contract import contract_targets as contract_targets
from longtail.testing.loss_checks import LOSS_CHECKS as LOSS_CHECKS
from longtail.testing.loss_checks import check_carried as check_carried
from longtail.testing.loss_checks import check_loss as check_loss
from longtail.testing.world import FiniteWorld as FiniteWorld


def __dir__() -> list[str]:
    return public_names(globals())
