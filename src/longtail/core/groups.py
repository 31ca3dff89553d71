"""Many, medium and few: groups of classes by how often they were seen in training."""

from typing import Any

from longtail.core.arrays import ArrayLike, to_kind
from longtail.core.labels import check_counts
from longtail.core.numbers import check_number


def shot_groups(
    counts: ArrayLike,
    *,
    many: int = 100,
    few: int = 20,
    many_inclusive: bool = False,
    few_inclusive: bool = False,
) -> dict[str, Any]:
    """Boolean masks over the classes, by training count.

    Papers disagree about the edges. The default is that of most code: many > 100, few < 20.

    Args:
        counts: Training samples of each class.
        many: Above this a class has many samples.
        few: Below this a class has few samples.
        many_inclusive: Whether a class with exactly `many` samples belongs to many.
        few_inclusive: Whether a class with exactly `few` samples belongs to few.

    >>> {name: mask.tolist() for name, mask in shot_groups([500, 100, 20, 5]).items()}
    {'many': [True, False, False, False],
     'medium': [False, True, True, False],
     'few': [False, False, False, True]}
    """
    check_number(many, "many")
    check_number(few, "few")
    if few > many or (few == many and many_inclusive and few_inclusive):
        raise ValueError(
            f"groups must not overlap: few ({few}) must lie below many ({many}), "
            "or meet it with one edge inclusive at the most"
        )
    checked = check_counts(counts)
    is_many = checked >= many if many_inclusive else checked > many
    is_few = checked <= few if few_inclusive else checked < few
    masks = {"many": is_many, "medium": ~(is_many | is_few), "few": is_few}
    return {name: to_kind(mask, counts) for name, mask in masks.items()}
