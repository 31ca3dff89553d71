"""A warning that comes before all else: scores that are no better than those of no model."""

from longtail.metrics.sanity import Sanity
from longtail.report.sections.verdict import percent

_CHECK = (
    "Check that the columns are in the order of the classes and of the counts, that every column "
    "is a class, and that the labels are those of these rows."
)


def sanity_in_words(found: Sanity) -> str:
    """What is wrong, or nothing where nothing is."""
    wrong = []
    if found.near_chance:
        wrong.append(
            f"the result is near chance (balanced accuracy {percent(found.balanced_accuracy)} %, "
            f"one answer for all gives {percent(found.chance)} %)"
        )
    if found.below_largest_class:
        wrong.append(
            f"the model is right on {percent(found.accuracy)} % of the samples, always answering "
            f"the largest class would be on {percent(found.largest_class)} %"
        )
    if found.has_lost:
        return (
            "Do not use this result: it is right on "
            f"{percent(found.result_accuracy)} % of the samples, where the scores before were on "
            f"{percent(found.accuracy)} %, and nothing was gained for it. What was fitted does not "
            "suit these scores; try longtail fix --calibrate none, or --tau 1."
        )
    if not wrong:
        return ""
    said = "; ".join(wrong)
    if found.near_chance:
        return f"Do not trust these numbers: {said}. {_CHECK}"
    return (
        f"Look twice before you trust these numbers: {said}. A model that was trained to treat "
        f"classes alike may be. {_CHECK}"
    )
