"""A comparison in sentences: what is best, what is noise, what would tell, what varies."""

from collections.abc import Sequence

from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import Metric
from longtail.flows.compare_sets import BesideBest, ComparedSet, Ranks
from longtail.flows.noise import MOST_TIMES
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.report.names import GROUPS, groups_in_words

_NEAREST = 3
_NOTES = {
    "unfinished": "Passed over: {0.path}, a run that has not finished.",
    "unreadable": "Passed over: {0.error}.",
    "no_test_part": "{0.path} has no test part: compared on validation samples that may have "
    "chosen something.",
    "fitted_here": "{0.path}: the fix was fitted on the samples it is measured on here, so it "
    "looks better than it is; longtail fix --apply adjusts others.",
}


def headline(table: ComparedSet) -> str:
    """Which method is best, which cannot be told apart from it, which are behind."""
    metric, best = table.by, table.methods[0]
    value = f"{_told(table)} {amount(best.estimates[metric.key].value, metric)}"
    if len(table.methods) < 2:
        return f"There is only one method, {best.name} ({value}), so nothing to compare it with."
    verdict = table.verdicts.get(metric.key)
    if verdict is None:
        return f"Best is {best.name} ({value}); differences in this metric are not tested."
    sentences = []
    if verdict.tied:
        verb = "cannot be told apart from the best,"
        sentences.append(f"{listed(verdict.tied)} {verb} {verdict.best} ({value}).")
        if verdict.behind:
            sentences.append(f"Behind it by more than noise: {listed(verdict.behind)}.")
    elif verdict.behind:
        rest = listed(verdict.behind) if len(verdict.behind) < 4 else "all other methods"
        sentences.append(f"{verdict.best} is best ({value}), ahead of {rest} by more than noise.")
    if verdict.left_out:
        left_out = listed(verdict.left_out)
        sentences.append(f"Without a finite value, and so not compared: {left_out}.")
    return " ".join(sentences)


def _told(table: ComparedSet) -> str:
    """The metric that orders the methods, and where there are two of it which is meant."""
    name = table.by.name
    is_told = not table.has_moved or table.by.key == "accuracy_under_target"
    return name if is_told else f"{name} {UNDER_TARGET}"


def next_step(table: ComparedSet) -> str:
    """What to do now, in one sentence."""
    verdict = table.verdicts.get(table.by.key)
    if verdict is None or not verdict.others:
        return ""
    alone = table.run_numbers[0] == 1
    more = " Train a few seeds of each: only then is it about methods." if alone else ""
    if not verdict.tied:
        return f"Take {verdict.best}.{more}"
    names = listed((verdict.best, *verdict.tied))
    which = names if len(verdict.tied) < 4 else "the methods marked †"
    return (
        f"These runs do not say which of {which} is best: choose by cost, or make more runs.{more}"
    )


def what_would_tell(table: ComparedSet) -> list[str]:
    """For the methods nearest to the best, where they may be as good, roughly what would tell."""
    verdict = table.verdicts.get(table.by.key)
    if verdict is None:
        return []
    tied = [each for each in verdict.others if not each.told_apart]
    end = verdict.best, table.by, verdict.with_seeds
    return [_would_tell(each, *end) for each in tied[:_NEAREST]]


def _would_tell(each: BesideBest, best: str, metric: Metric, with_seeds: bool) -> str:
    if each.behind == 0:
        return f"{each.method} and {best} are alike to the last digit."
    gap = amount(each.behind, metric, gap=True)
    lead = f"To tell {each.method} from {best}, if they really differ by {gap}, would take"
    more = each.enough_samples
    samples = "" if more is None else f"about {_rough(more)} times the test samples"
    if not with_seeds:
        enough = samples or f"more than {MOST_TIMES} times the test samples"
        return f"{lead} {enough} for these models, and a few seeds each for the methods."
    if each.enough_seeds is not None:
        others = f", or {samples} with the seeds there are" if samples else ""
        return f"{lead} about {each.enough_seeds} seeds each{others}."
    if samples:
        return f"{lead} {samples}; more seeds alone would not do."
    if each.enough_of_both is not None:
        times = _rough(each.enough_of_both)
        return f"{lead} about {times} times both the seeds and the test samples."
    return f"{lead} more seeds and samples than anyone has."


def what_varies(table: ComparedSet) -> list[str]:
    """Which source of variation is in the intervals and in the verdicts, and which is not."""
    return [*intervals(table), *judged(table)]


def intervals(table: ComparedSet) -> list[str]:
    """What the intervals are over."""
    kinds = {method.estimates[table.by.key].over for method in table.methods}
    sentences = []
    if "seeds" in kinds:
        sentences.append(
            "± is half of a 95 % interval over seeds (Student's t): what other seeds would give "
            "on these same test samples."
        )
    if "samples" in kinds:
        which = " of a method with one run" if "seeds" in kinds else ""
        sentences.append(
            f"±{which} is half of a 95 % interval over test samples drawn again within each class, "
            "and where its ends are not equally far both stand in brackets (Wilson's for "
            "accuracies): what this one model would give on other samples. How much another seed "
            "would change is not in it."
        )
    return sentences


def judged(table: ComparedSet) -> list[str]:
    """What the verdicts count, and what to make of few seeds."""
    sentences = []
    numbers = table.run_numbers
    if numbers[0] == 1 and numbers[-1] > 1 and len(table.methods) > 1:
        lone = [method.name for method in table.methods if len(method.runs) == 1]
        sentences.append(
            f"Only one run of {listed(lone)}: taken to vary from seed to seed as the other methods "
            "do on average."
        )
    elif len(numbers) > 1:
        sentences.append(f"Methods have between {numbers[0]} and {numbers[-1]} runs.")
    if 2 in numbers:
        sentences.append(
            "Two seeds say little about how much seeds vary: their intervals come out very wide, "
            "or by luck very narrow."
        )
    if table.verdicts and len(table.methods) > 1:
        sentences.append(_tested(table))
    return sentences


def _tested(table: ComparedSet) -> str:
    verdict = next(iter(table.verdicts.values()))
    sources = (
        "Differences are judged sample by sample on the same test samples, with the variation of "
        "seeds and of test samples both counted"
        if verdict.with_seeds
        else "Differences are judged sample by sample on the same test samples; with one run of "
        "each method they are between these models, not between the methods"
    )
    count = f", by Holm's correction for all {table.pairs} pairs of methods"
    count = count if table.pairs > 1 else ""
    return f"{sources} (level 5 %{count}). Each column is judged by itself."


def target(result: CompareResult) -> str:
    """What the metrics are under."""
    if result.target == "none":
        return f"{AS_TRAINED}: scores and samples as they are"
    names = {"uniform": "the uniform prior", "given": "the given prior"}
    return f"{UNDER_TARGET} ({names.get(result.target, f'the prior of {result.target}')})"


def average_ranks(ranks: Ranks) -> str:
    """The ranks over several sets, the best first."""
    ordered = sorted(ranks.mean.items(), key=lambda item: item[1])
    shown = ", ".join(f"{name} {rank:.2f}" for name, rank in ordered)
    return f"Average rank over {ranks.blocks} {ranks.over}: {shown}"


def caption(table: ComparedSet, result: CompareResult) -> str:
    """What stands above or below the table."""
    size = f"{len(table.samples.labels):,} samples of {table.samples.num_classes:,} classes"
    runs = table.run_numbers
    seeds = " to ".join(map(str, runs[:1] + runs[1:][-1:]))
    plural = "run" if runs == [1] else "runs"
    text = f"{table.samples.name}: {size}, {target(result)}; {seeds} {plural} a method."
    has_groups = any(metric.key in GROUPS for metric in table.metrics)
    return f"{text} {groups_in_words(table.samples.edges)}" if has_groups else text


def what_moved(table: ComparedSet) -> str:
    """What of the table is as trained and what under the target; empty where they are the same."""
    if not table.has_moved:
        return ""
    return (
        "Scores that say what they carry were moved to the target, and all is measured under it; "
        f"{AS_TRAINED} is {table.by.name} of the scores as they are, of a fix as it left them."
    )


def legend(table: ComparedSet) -> str:
    """What bold and marked cells mean."""
    if len(table.methods) < 2:
        return ""
    untested = [m.name for m in table.metrics if m.key not in table.verdicts]
    marks = "Bold: the best of its column. †: cannot be told apart from it."
    return f"{marks} Not tested: {listed(untested)}." if untested else marks


def notes(result: CompareResult) -> list[str]:
    """What has to be said about the files and the runs."""
    sentences = [_NOTES[each.about].format(each) for each in result.notes]
    for table in result.sets:
        still = [m.name for m in table.methods if not m.is_moved]
        if still:
            sentences.append(
                f"Nobody knows what prior the scores of {listed(still)} carry, so they were taken "
                "as they are and not moved to the target."
            )
        copies = table.copies
        sentences += [f"{copy} has the scores of {same}: counted once." for copy, same in copies]
    if len(result.sets) > 1:
        sentences.append(
            "The runs are of different data (other test labels, classes or training counts): "
            "there is a table for each."
        )
    return sentences


def _rough(value: float) -> str:
    """Two significant digits at the most."""
    return f"{value:.1f}" if value < 9.5 else f"{float(f'{value:.2g}'):.0f}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: CE, LA and BS."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def amount(value: float | None, metric: Metric, gap: bool = False) -> str:
    """A value with its unit; a gap between two shares is in points."""
    if value is None:
        return "none"
    unit = (" points" if gap else " %") if metric.percent else ""
    digits = metric.digits + gap
    return f"{metric.factor * value:.{digits}f}{unit}"
