"""What to try, as far as the numbers of an audit speak for it."""

from dataclasses import dataclass

from longtail.recipes.audit import Audit
from longtail.recipes.audit_words import classes_have

# A mean recall that is uncertain by more points than this cannot tell one τ from another.
_UNCERTAIN = 3.0
# What the file of scores holds only its owner knows: a word to replace, as VAL itself.
_KIND_MEANT = "KIND is logits or probs: what VAL, the file of held-out scores, holds."


@dataclass(frozen=True)
class Remedy:
    """Something to try: why, and the lines that do it, of Python or of the shell."""

    why: str
    lines: tuple[str, ...] = ()


def remedies(
    found: Audit, counts: str = "counts.json", test_counts: str = "test_counts.json"
) -> list[Remedy]:
    """What to try, first things first.

    Args:
        found: What was found.
        counts: The file of training counts that commands are shown with.
        test_counts: The same for the test set.
    """
    tried = _about_absent_classes(found)
    if found.has_tail:
        tried += _about_the_prior(found, counts)
    some_absent = found.test is not None and found.test.absent
    target = 'lt.Prior.of(test_counts, zeros="keep")' if some_absent else "test_counts"
    if found.shift is not None and found.shift.is_real and not found.tests_balanced:
        tried.append(
            Remedy(
                "If the model will meet labels as in the test set, move its scores to that prior "
                f"and not to the uniform one. {_KIND_MEANT}",
                (
                    f"longtail fix VAL --kind KIND --counts {counts} --target {test_counts} "
                    "-o fixed",
                    f"lt.Scores(logits, labels, carried=counts).under({target})",
                ),
            )
        )
    if found.has_tail:
        tried.append(
            Remedy(
                "Beside accuracy report balanced accuracy, and that of many, medium and few.",
                ("lt.metrics.evaluate(lt.Scores(logits, labels, counts=counts))",),
            )
        )
    if found.train.single:
        tried.append(
            Remedy(
                f"{classes_have(found.train.single)} a single sample, which can be trained on or "
                "tested on, not both. Merge such a class with a related one, drop it, or collect "
                "more."
            )
        )
    return tried


def _about_absent_classes(found: Audit) -> list[Remedy]:
    if not found.train.absent:
        return []
    return [
        Remedy(
            f"{classes_have(found.train.absent)} no training samples, and a prior that logits "
            "carry needs a weight for every class: drop these classes, or add half a sample to "
            "each.",
            ('prior = lt.Prior.of(counts, zeros="smooth")  # for counts, where a prior is asked',),
        )
    ]


def _about_the_prior(found: Audit, counts: str) -> list[Remedy]:
    few = found.groups[-1]
    uncertain = few.mean_error is not None and few.mean_error > _UNCERTAIN
    return [
        Remedy(
            "A model that is trained already: move its scores to the uniform prior. This is "
            "logit adjustment with τ = 1 and needs no training; the command calibrates first and "
            f"chooses τ on held-out scores. {_KIND_MEANT}",
            (
                f"longtail fix VAL --kind KIND --counts {counts} --target uniform -o fixed",
                "lt.Scores(logits, labels, carried=counts).under(lt.Prior.uniform(len(counts)))",
            ),
        ),
        Remedy(
            "A model that you train: take the prior out in the loss, so that its logits carry the "
            "uniform one.",
            ("loss = lt.losses.LogitAdjusted(counts)",),
        ),
        Remedy(
            "Keep τ = 1 unless you have more held-out samples of rare classes than these: they are "
            "too few to choose another one by."
            if uncertain
            else "Choose τ on held-out samples of the training data, never on the test set.",
            () if uncertain else ("lt.posthoc.LogitAdjustment.fit(validation)",),
        ),
    ]
