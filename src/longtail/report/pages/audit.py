"""The audit in sentences, tables and a page."""

from collections.abc import Sequence

from longtail.flows.audit import AuditResult, Remedy
from longtail.flows.label_profile import Profile
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.classes import counts_chart
from longtail.report.names import group_ranges, how_many
from longtail.report.page import Column, Figure, Footer, Page, Section, Table

# What the file of scores holds only its owner knows: a word to replace, as VAL itself.
_KIND_MEANT = "KIND is logits or probs: what VAL, the file of validation scores, holds."
_REMEDIES = {
    "absent": "{absent} no training samples, and a prior that logits carry needs a weight for "
    "every class: drop these classes, or add half a sample to each.",
    "move": "A model that is trained already: move its scores to the uniform prior. This is logit "
    "adjustment with τ = 1 and needs no training; the command calibrates first and chooses τ on "
    f"validation scores. {_KIND_MEANT}",
    "loss": "A model that you train: take the prior out in the loss, so that its logits carry the "
    "uniform one.",
    "keep_tau": "Keep τ = 1 unless you have more validation samples of rare classes than these: "
    "they are too few to choose another one by.",
    "choose_tau": "Choose τ on validation samples, never on the test set.",
    "target": "If the model will meet labels as in the test set, move its scores to that prior and "
    f"not to the uniform one. {_KIND_MEANT}",
    "metrics": "Beside accuracy report balanced accuracy, and that of many, medium and few.",
    "single": "{single} a single sample, which can be trained on or tested on, not both. Merge "
    "such a class with a related one, drop it, or collect more.",
}
_MOVED = "total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}"
_EXPECT = {
    "balanced": "The labels are balanced: there is no tail to correct.",
    "ids": "No label occurs twice: {train.num_samples:,} samples of as many classes. This looks "
    "like an index or an id, not like labels; say which column has them with --column.",
    "nearly_balanced": "The labels are nearly balanced: the largest class has {times} times the "
    "samples of the smallest, and logits start {bias:.2f} nats apart at the most. There is no tail "
    "to correct.",
    "tail": "Trained with plain cross-entropy, logits carry these frequencies: those of {small} "
    "start {bias:.1f} nats behind those of {large}. A sample of {small} wins against {large} only "
    "if it looks {times} times more like the former.",
    "scarce": "Classes with {few_range} samples hold {few.share:.0%} of all samples: data are "
    "scarce altogether, and no correction of the prior makes up for that.",
    "small_tail": "The {few_classes} with {few_range} samples hold {few.share:.1%} of all "
    "samples: where labels are distributed like these, a model that never predicts them loses no "
    "more accuracy than that.",
    "few_tested": "Behind the accuracy on classes with few training samples stand "
    "{few.tested_samples:,} test samples of {tested_classes}. A recall measured on the median of "
    "{few.median:g} has a standard error of up to {few.class_error:.0f} points, the mean of all "
    "these recalls one of up to {few.mean_error:.1f}.",
    "few_untested": "The test set has no sample of the {few_classes} with few training samples: "
    "nothing can be said about how well they are found.",
    "test_balanced": "The test set is balanced and the training set is not: on it accuracy is "
    "balanced accuracy, and logits that carry the training prior cost some of it.",
    "test_shifted": "The test labels follow another prior than the training labels "
    f"({_MOVED}): there, logits that carry the training prior are biased and their probabilities "
    "are off.",
    "test_alike": f"The test labels are distributed like the training labels ({_MOVED}).",
    "test_has_own_tail": "They have a tail of their own.",
    "test_is_nearer_uniform": "They are nearer to the uniform prior ({shift.to_uniform:.1%}): "
    "scores moved to it should gain accuracy on them too.",
    "test_has_tail_too": "They have a tail too: accuracy on them rewards predicting frequent "
    "classes, and scores moved to the uniform prior gain balanced accuracy but lose some accuracy.",
    "not_in_test": "{not_in_test} no test samples: their recalls cannot be measured, and means "
    "over classes leave them out.",
    "not_in_train": "{not_in_train} test samples but no training samples: no model can have "
    "learned that.",
}


def _lines(remedy: Remedy) -> list[str]:
    return [line for line in (remedy.command, remedy.python) if line]


def audit_page(result: AuditResult, footer: Footer) -> Page:
    """The page of `longtail audit`."""
    train = result.train
    first, *others = audit_tables(result)
    tried = [[why(result, each), "; ".join(_lines(each))] for each in result.remedies]
    remedies = Section("What to try", table=Table([Column("what"), Column("how")], tried))
    return Page(
        title="longtail audit",
        summary=(
            f"{train.num_samples:,} training samples of {train.num_classes:,} classes. The largest "
            f"class has {_times(train.imbalance_ratio)} times the samples of the smallest, and the "
            f"largest tenth of the classes holds {train.head_share:.0%} of all samples."
        ),
        sections=[
            Section(
                first[0], table=first[1], figures=[_counts_figure(result), _share_figure(result)]
            ),
            *(Section(title, table=table) for title, table in others),
            Section("What to expect", paragraphs=expectations(result)),
            *([remedies] if tried else []),
        ],
        footer=footer,
    )


def audit_tables(result: AuditResult) -> list[tuple[str, Table]]:
    """Titles and tables: the tail, the groups, and where shares differ by more than chance."""
    sets = {"train": result.train} | ({"test": result.test} if result.test else {})
    profiles = [_profile_cells(profile) for profile in sets.values()]
    ranges = group_ranges(result.edges)
    groups = {f"{group.name}, {ranges[group.name]}": group for group in result.groups}
    rows = [[key, *(part[key] for part in profiles)] for key in profiles[0]]
    tables = [("How long the tail is", _table(["", *sets], rows))]
    rows = [
        [name, f"{g.num_classes:,}", f"{g.num_samples:,}", f"{g.share:.1%}"]
        for name, g in groups.items()
    ]
    heads = ["training samples", "classes", "samples", "share"]
    tables.append(("Classes by training samples", _table(heads, rows)))
    if result.test is not None:
        rows = []
        for name, group in groups.items():
            errors = ((group.median, "g"), (group.class_error, ".1f"), (group.mean_error, ".1f"))
            cells = ["" if value is None else f"{value:{style}}" for value, style in errors]
            rows.append([name, f"{group.tested_classes:,}", f"{group.tested_samples:,}", *cells])
        caption = (
            "tested: classes with test samples; median: those of the middle one; ±: the largest "
            "standard error in points, of a recall on so many and of the group's mean recall"
        )
        heads = ["training samples", "tested", "test samples", "median", "± recall", "± mean"]
        tables.append(("What the test set can say about them", _table(heads, rows, caption)))
    shift = result.shift
    if shift is not None and shift.is_real:
        rows = [[move.name, f"{move.train:.2%}", f"{move.test:.2%}"] for move in shift.moves]
        caption = (
            f"Total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}; "
            f"divergence of test from train {shift.divergence:.3g} nats."
        )
        heads = ["class", "train", "test"]
        tables.append(("Shares that differ most", _table(heads, rows, caption)))
    return tables


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    return Table([Column(name) for name in heads], rows, caption)


def _profile_cells(profile: Profile) -> dict[str, str]:
    largest, smallest = profile.largest, profile.smallest
    return {
        "samples": f"{profile.num_samples:,}",
        "classes": f"{profile.num_classes:,}",
        "largest class": f"{largest.count:,} ({_called(largest.name)})",
        "smallest class": f"{smallest.count:,} ({_called(smallest.name)})",
        "imbalance ratio": _times(profile.imbalance_ratio),
        "Gini coefficient": f"{profile.gini:.2f}",
        "effective number of classes": f"{profile.effective_classes:,.1f}",
        "share of the largest tenth": f"{profile.head_share:.1%}",
        "classes with one sample": f"{len(profile.single):,}",
        "classes without samples": f"{len(profile.absent):,}",
    }


def _counts_figure(result: AuditResult) -> Figure:
    sets = {"train": result.counts} | ({"test": result.test_counts} if result.test_counts else {})
    return Figure(
        counts_chart(sets, classes=result.classes, groups=result.edges),
        "How many samples each class has, from the most frequent to the rarest"
        + (", each set by itself." if len(sets) > 1 else "."),
    )


def _share_figure(result: AuditResult) -> Figure:
    curves = [Line(name, *curve) for name, curve in result.curves.items()]
    return Figure(
        line_chart(
            [*curves, Line("balanced", [0, 100], [0, 100])],
            title="Samples of the largest classes",
            x_title="classes, by training samples (%)",
            y_title="samples (%)",
        ),
        "How much of all samples the largest classes hold. The further above the line of a "
        "balanced set, the longer the tail.",
    )


def expectations(result: AuditResult) -> list[str]:
    """What these labels do to a model, and to what can be said about it."""
    sentences: list[str] = []
    facts = _facts(result)
    for finding in result.findings:
        sentence = _EXPECT[finding].format(**facts)
        if finding in ("test_has_own_tail", "test_is_nearer_uniform", "test_has_tail_too"):
            sentence = f"{sentences.pop()} {sentence}"
        sentences.append(sentence)
    return sentences


def why(result: AuditResult, remedy: Remedy) -> str:
    """What a remedy is for."""
    return _REMEDIES[remedy.kind].format(**_facts(result))


def _facts(result: AuditResult) -> dict[str, object]:
    """What the sentences say, by the names that they have for it."""
    train, shift, few = result.train, result.shift, result.groups[-1]
    return {
        **{"train": train, "shift": shift, "few": few, "bias": result.bias},
        "times": _times(train.imbalance_ratio),
        "large": _called(train.largest.name),
        "small": _called(train.smallest.name),
        "few_range": group_ranges(result.edges)["few"],
        "few_classes": _classes(few.num_classes),
        "tested_classes": _classes(few.tested_classes or 0),
        "absent": _classes_have(train.absent),
        "single": _classes_have(train.single),
        "not_in_test": _classes_have(shift.not_in_test if shift else ()),
        "not_in_train": _classes_have(shift.not_in_train if shift else ()),
    }


def _called(name: str) -> str:
    """A class in running text: one that is only a number is called a class."""
    return f"class {name}" if name.isdigit() else name


def _times(ratio: float) -> str:
    """A ratio as people write it: 5.34, 25.4, 2,840."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _classes(number: int) -> str:
    return how_many(number, "class", "classes")


def _classes_have(names: Sequence[str]) -> str:
    """The opening of a sentence: how many classes, which, and the verb."""
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{_classes(len(names))} ({listed}) {'has' if len(names) == 1 else 'have'}"
