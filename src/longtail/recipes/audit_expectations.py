"""What the numbers of an audit mean, in sentences that depend on them."""

from longtail.recipes.audit import Audit, Group, Shift
from longtail.recipes.audit_words import class_called, classes_have, number_of, times

# So many samples of as many classes are no labels.
_SUSPICIOUS = 20


def expectations(found: Audit) -> list[str]:
    """What these labels do to a model, and to what can be said about it."""
    said = [_bias(found), *_mass(found)]
    if found.shift is None:
        return said
    few = [_certainty(group) for group in found.groups if group.name == "few" and group.num_classes]
    return [*said, _test_prior(found, found.shift), *few, *_missing(found.shift)]


def _bias(found: Audit) -> str:
    train = found.train
    if train.num_samples == train.num_classes and train.num_samples >= _SUSPICIOUS:
        return (
            f"No label occurs twice: {train.num_samples:,} samples of as many classes. This looks "
            "like an index or an id, not like labels; say which column has them with --column."
        )
    large, small = class_called(train.largest.name), class_called(train.smallest.name)
    if train.imbalance_ratio == 1:
        return "The labels are balanced: there is no tail to correct."
    if not found.has_tail:
        return (
            f"The labels are nearly balanced: the largest class has {times(train.imbalance_ratio)} "
            f"times the samples of the smallest, and logits start {found.bias:.2f} nats apart at "
            "the most. There is no tail to correct."
        )
    return (
        f"Trained with plain cross-entropy, logits carry these frequencies: those of {small} start "
        f"{found.bias:.1f} nats behind those of {large}. A sample of {small} wins against {large} "
        f"only if it looks {times(train.imbalance_ratio)} times more like the former."
    )


def _mass(found: Audit) -> list[str]:
    few = found.groups[-1]
    share = few.num_samples / found.train.num_samples
    if share > 0.5:
        return [
            f"Classes with fewer than 20 samples hold {share:.0%} of all samples: data are scarce "
            "altogether, and no correction of the prior makes up for that."
        ]
    if not found.has_tail or not share or share > 0.2:
        return []
    return [
        f"The {number_of(few.num_classes)} with fewer than 20 samples hold {share:.1%} of all "
        "samples: where labels are distributed like these, a model that never predicts them loses "
        "no more accuracy than that."
    ]


def _test_prior(found: Audit, shift: Shift) -> str:
    if found.has_tail and found.tests_balanced:
        return (
            "The test set is balanced and the training set is not: on it accuracy is balanced "
            "accuracy, and logits that carry the training prior cost some of it."
        )
    moved = f"total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}"
    said = (
        f"The test labels follow another prior than the training labels ({moved}): there, logits "
        "that carry the training prior are biased and their probabilities are off."
        if shift.is_real
        else f"The test labels are distributed like the training labels ({moved})."
    )
    if found.tests_balanced:
        return said
    if not found.has_tail:
        return f"{said} They have a tail of their own."
    if shift.to_uniform < shift.total_variation:
        return (
            f"{said} They are nearer to the uniform prior ({shift.to_uniform:.1%}): scores moved "
            "to it should gain accuracy on them too."
        )
    return (
        f"{said} They have a tail too: accuracy on them rewards predicting frequent classes, and "
        "scores moved to the uniform prior gain balanced accuracy but lose some accuracy."
    )


def _certainty(few: Group) -> str:
    if not few.tested_samples or few.class_error is None or few.mean_error is None:
        return (
            f"The test set has no sample of the {number_of(few.num_classes)} with few training "
            "samples: nothing can be said about how well they are found."
        )
    return (
        f"Behind the accuracy on classes with few training samples stand {few.tested_samples:,} "
        f"test samples of {number_of(few.tested_classes or 0)}. A recall measured on the median of "
        f"{few.median:g} has a standard error of up to {few.class_error:.0f} points, the mean of "
        f"all these recalls one of up to {few.mean_error:.1f}."
    )


def _missing(shift: Shift) -> list[str]:
    said = []
    if shift.not_in_test:
        said.append(
            f"{classes_have(shift.not_in_test)} no test samples: their recalls cannot be measured, "
            "and means over classes leave them out."
        )
    if shift.not_in_train:
        said.append(
            f"{classes_have(shift.not_in_train)} test samples but no training samples: no model "
            "can have learned that."
        )
    return said
