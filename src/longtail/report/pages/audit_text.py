"""The audit in sentences: what to expect, and what to try."""

from collections.abc import Sequence

from longtail.flows.audit import AuditResult, Remedy

# What the file of scores holds only its owner knows: a word to replace, as VAL itself.
_KIND_MEANT = "KIND is logits or probs: what VAL, the file of held-out scores, holds."
_REMEDIES = {
    "absent": "{absent} no training samples, and a prior that logits carry needs a weight for "
    "every class: drop these classes, or add half a sample to each.",
    "move": "A model that is trained already: move its scores to the uniform prior. This is logit "
    "adjustment with τ = 1 and needs no training; the command calibrates first and chooses τ on "
    f"held-out scores. {_KIND_MEANT}",
    "loss": "A model that you train: take the prior out in the loss, so that its logits carry the "
    "uniform one.",
    "keep_tau": "Keep τ = 1 unless you have more held-out samples of rare classes than these: they "
    "are too few to choose another one by.",
    "choose_tau": "Choose τ on held-out samples of the training data, never on the test set.",
    "target": "If the model will meet labels as in the test set, move its scores to that prior and "
    f"not to the uniform one. {_KIND_MEANT}",
    "metrics": "Beside accuracy report balanced accuracy, and that of many, medium and few.",
    "single": "{single} a single sample, which can be trained on or tested on, not both. Merge "
    "such a class with a related one, drop it, or collect more.",
}


def expectations(result: AuditResult) -> list[str]:
    """What these labels do to a model, and to what can be said about it."""
    sentences: list[str] = []
    for finding in result.findings:
        sentence = _sentence(finding, result)
        if finding in ("test_has_own_tail", "test_is_nearer_uniform", "test_has_tail_too"):
            sentence = f"{sentences.pop()} {sentence}"
        sentences.append(sentence)
    return sentences


def _sentence(finding: str, result: AuditResult) -> str:
    train, few = result.train, result.groups[-1]
    large, small = class_called(train.largest.name), class_called(train.smallest.name)
    ratio = times(train.imbalance_ratio)
    match finding:
        case "balanced":
            return "The labels are balanced: there is no tail to correct."
        case "ids":
            return (
                f"No label occurs twice: {train.num_samples:,} samples of as many classes. This "
                "looks like an index or an id, not like labels; say which column has them with "
                "--column."
            )
        case "nearly_balanced":
            return (
                f"The labels are nearly balanced: the largest class has {ratio} times the samples "
                f"of the smallest, and logits start {result.bias:.2f} nats apart at the most. "
                "There is no tail to correct."
            )
        case "tail":
            return (
                "Trained with plain cross-entropy, logits carry these frequencies: those of "
                f"{small} start {result.bias:.1f} nats behind those of {large}. A sample of "
                f"{small} wins against {large} only if it looks {ratio} times more like the former."
            )
        case "scarce":
            return (
                f"Classes with fewer than 20 samples hold {result.few_share:.0%} of all samples: "
                "data are scarce altogether, and no correction of the prior makes up for that."
            )
        case "small_tail":
            return (
                f"The {number_of(few.num_classes)} with fewer than 20 samples hold "
                f"{result.few_share:.1%} of all samples: where labels are distributed like these, "
                "a model that never predicts them loses no more accuracy than that."
            )
        case "few_tested":
            return (
                "Behind the accuracy on classes with few training samples stand "
                f"{few.tested_samples:,} test samples of {number_of(few.tested_classes or 0)}. A "
                f"recall measured on the median of {few.median:g} has a standard error of up to "
                f"{few.class_error:.0f} points, the mean of all these recalls one of up to "
                f"{few.mean_error:.1f}."
            )
        case "few_untested":
            return (
                f"The test set has no sample of the {number_of(few.num_classes)} with few training "
                "samples: nothing can be said about how well they are found."
            )
        case _:
            return _shift_sentence(finding, result)


def _shift_sentence(finding: str, result: AuditResult) -> str:
    shift = result.shift
    assert shift is not None
    moved = f"total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}"
    return {
        "test_balanced": "The test set is balanced and the training set is not: on it accuracy is "
        "balanced accuracy, and logits that carry the training prior cost some of it.",
        "test_shifted": "The test labels follow another prior than the training labels "
        f"({moved}): there, logits that carry the training prior are biased and their "
        "probabilities are off.",
        "test_alike": f"The test labels are distributed like the training labels ({moved}).",
        "test_has_own_tail": "They have a tail of their own.",
        "test_is_nearer_uniform": f"They are nearer to the uniform prior ({shift.to_uniform:.1%}): "
        "scores moved to it should gain accuracy on them too.",
        "test_has_tail_too": "They have a tail too: accuracy on them rewards predicting frequent "
        "classes, and scores moved to the uniform prior gain balanced accuracy but lose some "
        "accuracy.",
        "not_in_test": f"{classes_have(shift.not_in_test)} no test samples: their recalls cannot "
        "be measured, and means over classes leave them out.",
        "not_in_train": f"{classes_have(shift.not_in_train)} test samples but no training samples: "
        "no model can have learned that.",
    }[finding]


def why(result: AuditResult, remedy: Remedy) -> str:
    """What a remedy is for."""
    absent, single = classes_have(result.train.absent), classes_have(result.train.single)
    return _REMEDIES[remedy.kind].format(absent=absent, single=single)


def class_called(name: str) -> str:
    """A class in running text: one that is only a number is called a class."""
    return f"class {name}" if name.isdigit() else name


def times(ratio: float) -> str:
    """A ratio as people write it: 5.34, 25.4, 2,840."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def number_of(classes: int) -> str:
    """How many classes: 1 class, 28 classes."""
    return "1 class" if classes == 1 else f"{classes:,} classes"


def classes_have(names: Sequence[str]) -> str:
    """The opening of a sentence: how many classes, which, and the verb."""
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{number_of(len(names))} ({listed}) {'has' if len(names) == 1 else 'have'}"
