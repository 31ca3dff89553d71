"""What a trained network makes of each class: its probability, its logits, its learned offset."""

from __future__ import annotations

from longtail.core.arrays import as_numpy
from longtail.flows.reproduce.score_measures import Value, measure_scores
from longtail.flows.samples import AS_TRAINED
from longtail.flows.train.result import TrainResult
from longtail.heads.head import LinearHead


def class_values(result: TrainResult) -> dict[str, dict[str, Value]]:
    """By variant, on the part that the headline is of: as trained, and the headline's own.

    `mean_probability` of both where the test part is balanced, since it follows the labels of that
    part too; `class_logits` of the headline's; the trained `bias` as trained. Empty without scores.
    """
    split, by_name = result.judged_on, {each.name: each for each in result.variants}
    if split is None:
        return {}
    probability = ("mean_probability",) if result.shifted_sets else ()
    values = {AS_TRAINED: measure_scores(by_name[AS_TRAINED].scores[split], probability)}
    main = by_name[result.main_variant].scores[split]
    logits = ("positive_logit", "class_logits")
    values.setdefault(result.main_variant, {}).update(measure_scores(main, probability + logits))
    head = result.model.model.head
    bias = getattr(head, "bias", None) if isinstance(head, LinearHead) else None
    if bias is not None:
        values[AS_TRAINED]["bias"] = as_numpy(bias.detach().double())
    return values
