"""The result of `longtail fit` in words and tables, for the terminal and the page alike."""

from longtail.metrics import Interval
from longtail.recipes.fit_methods import METHODS
from longtail.recipes.fit_result import FitResult, MethodResult


def accuracy_name(result: FitResult) -> str:
    """What accuracy is meant."""
    return "balanced accuracy" if result.is_uniform else "accuracy under the target"


def headings(result: FitResult) -> tuple[str, ...]:
    """Of the columns of `method_rows`: accuracy under the target, then balanced if it differs."""
    balanced = () if result.is_uniform else ("balanced",)
    groups = ("many", "medium", "few")
    return (
        "method",
        "held out",
        "over linear",
        *balanced,
        "log-loss",
        *groups,
        "test",
        "chosen",
        "s",
    )


def method_rows(result: FitResult) -> list[tuple[str, ...]]:
    """What `headings` name, in % but for the log-loss; a method that failed says why."""
    return [_row(found, headings(result)) for found in result.methods]


def brief_columns(result: FitResult) -> dict[str, list[str]]:
    """What a terminal has room for: the interval that decides, and no column that is empty."""
    fitted = [found for found in result.methods if not found.failed]
    by_loss = result.plan.criterion == "nll"
    columns = {
        "method": [METHODS[found.name].title for found in fitted],
        "held out": [_percent(found.held_out["accuracy_under_target"]) for found in fitted],
        "log-loss": [_loss(found) for found in fitted] if by_loss else [],
        "over linear": [_over_linear(found) for found in fitted],
        "balanced": []
        if result.is_uniform
        else [_percent(found.held_out["balanced_accuracy"]) for found in fitted],
        **{
            name: [_percent(found.held_out[name]) for found in fitted if name in found.held_out]
            for name in ("many", "medium", "few")
        },
        "test": [
            _percent(found.test["accuracy_under_target"])
            for found in fitted
            if found.test is not None
        ],
        "τ": ["" if found.value is None else f"{found.value:.2f}" for found in fitted],
    }
    return {name: cells for name, cells in columns.items() if any(cells)}


def failures(result: FitResult) -> list[str]:
    """The methods that could not be fitted, and why."""
    return [
        f"{METHODS[found.name].title} failed: {found.failed}"
        for found in result.methods
        if found.failed
    ]


def headline(result: FitResult) -> str:
    """Which method is best, and how sure that is, in a few sentences."""
    best = result.methods[0]
    by = " by log-loss" if result.plan.criterion == "nll" else ""
    said = (
        f"Best on held-out samples{by}: {METHODS[result.best].title}, {accuracy_name(result)} "
        f"{_with_interval(best.held_out['accuracy_under_target'])} %"
    )
    if best.test is not None:
        said += f"; on the test part {_with_interval(best.test['accuracy_under_target'])} %"
    if result.best != "linear":
        low = best.gain.low
        # Intervals of classes with next to no samples lean on the other classes.
        sure = low is not None and low > 0 and 5 * result.few <= len(result.counts)
        said += (
            f". That is {_points(best.gain)} points over the linear layer as it is, "
            f"{'more than chance' if sure else 'which may be chance'}"
        )
    near = [
        METHODS[found.name].title
        for found in result.methods[1:]
        if found.behind.low is not None and found.behind.low <= 0
    ]
    if near:
        shown = "; ".join(near[:5]) + ("; and others" if len(near) > 5 else "")
        said += f". Held-out samples cannot tell it from: {shown}"
    elif not result.few:
        said += ". All others are behind it by more than chance"
    return f"{said}."


def decision(result: FitResult) -> str:
    """What was chosen, and on what."""
    names = {"accuracy_under_target": accuracy_name(result), "nll": "log-loss"}
    end = " (the last to be tried: a larger or smaller one may be better)"
    tuned = any(found.value is not None for found in result.methods)
    tau = " τ is held near 1 as far as these samples do not determine it." if tuned else ""
    return (
        f"Chosen on {result.judged_on}: weight decay {result.weight_decay:.2g}, of "
        f"{len(result.decays)} tried, by log-loss{end if result.at_the_end else ''}; the method by "
        f"{names.get(result.plan.criterion, 'balanced accuracy')}. "
        f"Fitted again on all of the train part.{tau}"
    )


def caution(result: FitResult) -> str:
    """What the intervals do not know, or nothing."""
    if not result.few:
        return ""
    none = f", {result.unjudged} of them none, which count for nothing" if result.unjudged else ""
    total = len(result.counts)
    return (
        f"{result.few} of {total} classes have fewer than five held-out samples{none}: "
        "their share of the intervals is borrowed from the other classes. More samples of the rare "
        "classes, or a validation part, would tell."
    )


def _row(found: MethodResult, names: tuple[str, ...]) -> tuple[str, ...]:
    title = METHODS[found.name].title
    if found.failed:
        return (title, f"failed: {found.failed}", *[""] * (len(names) - 2))
    held = found.held_out
    balanced = [_percent(held["balanced_accuracy"])] if "balanced" in names else []
    groups = [_percent(held[name]) if name in held else "" for name in ("many", "medium", "few")]
    return (
        title,
        _with_interval(held["accuracy_under_target"]),
        _over_linear(found),
        *balanced,
        _loss(found),
        *groups,
        "" if found.test is None else _with_interval(found.test["accuracy_under_target"]),
        "" if found.value is None else f"τ\u00a0=\u00a0{found.value:.2f}",
        f"{found.seconds:.1f}",
    )


def _over_linear(found: MethodResult) -> str:
    return "" if found.name == "linear" else _points(found.gain)


def _loss(found: MethodResult) -> str:
    loss = found.held_out["nll"].value
    return "none" if loss is None else f"{loss:.3f}"


def _percent(measured: Interval) -> str:
    return "none" if measured.value is None else f"{100 * measured.value:.1f}"


def _with_interval(measured: Interval) -> str:
    if measured.low is None or measured.high is None:
        return _percent(measured)
    return f"{_percent(measured)} [{100 * measured.low:.1f},\u00a0{100 * measured.high:.1f}]"


def _points(gain: Interval) -> str:
    if gain.value is None or gain.low is None or gain.high is None:
        return "none"
    value, low, high = (
        f"{100 * x:+.1f}".replace("-", "−") for x in (gain.value, gain.low, gain.high)
    )
    return f"{value} [{low},\u00a0{high}]"
