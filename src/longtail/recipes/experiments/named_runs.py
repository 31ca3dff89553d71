"""What the folders of the quick runs are called; a run without a name here is called as it is set.

The names are also those of the scores that are kept in results/scores.
"""

from longtail.flows.reproduce.experiment import Run
from longtail.recipes.experiments import runs


def named_runs() -> dict[str, Run]:
    """The runs that have a name, by it."""
    return {
        "ce": runs.CE,
        "la": runs.ADJUSTED,
        "lade": runs.LADE,
        "elm": runs.ELM,
        "ldam": runs.LDAM,
        "ldam-alone": runs.LDAM_ALONE,
        "focal": runs.FOCAL,
        "causal": runs.CAUSAL,
        "eo": runs.OFFSET,
        "eo-free": runs.OFFSET_FREE,
        "eo-none": runs.OFFSET_NONE,
        "ce10": runs.CE_10,
        "la10": runs.ADJUSTED_10,
        "elm10": runs.ELM_10,
    }
