"""All experiments, by name and in the order of their papers: tables first, then figures."""

from longtail.flows.reproduce.experiment import Experiment
from longtail.recipes.experiments import (
    elm,
    elm_figures,
    estimated_offset,
    estimated_offset_figures,
    lade,
    lade_settings,
    lade_shift,
    logit_adjustment,
    logit_adjustment_figures,
    nearest_class_mean,
    nearest_class_mean_appendix,
    nearest_class_mean_figures,
)

_PAPERS = (
    (logit_adjustment.TABLES, logit_adjustment_figures.FIGURES),
    (lade.TABLES, lade_settings.SETTINGS, lade_shift.SHIFT),
    (estimated_offset.TABLES, estimated_offset_figures.FIGURES),
    (elm.TABLES, elm_figures.FIGURES),
    (
        nearest_class_mean.TABLES,
        nearest_class_mean_appendix.APPENDIX,
        nearest_class_mean_figures.FIGURES,
    ),
)


def _order(experiment: Experiment) -> tuple[bool, int]:
    kind, number = experiment.item.split()
    return kind == "Figure", int(number)


_ALL = [
    experiment
    for parts in _PAPERS
    for experiment in sorted((each for part in parts for each in part), key=_order)
]
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}
if len(EXPERIMENTS) < len(_ALL):
    raise ValueError("two experiments have one name")
