"""What keeps the code base as it is meant to be: names, size, one place that moves priors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import longtail
from page_arithmetic import born_numbers
from prior_arithmetic import two_priors

SOURCE = Path(longtail.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = [name for name in longtail.__all__ if name not in ("core", "data")]


def name(path):
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= 300


def test_there_is_no_utils():
    assert not [path for path in FILES if path.stem in ("utils", "util", "helpers", "common")]


# What a sample counts for where labels follow t and not q: t(y)/q(y). No logits are moved by it.
SAMPLE_WEIGHTS = {
    "losses/lade.py": 1,
    "metrics/difference.py": 1,
    "metrics/sums.py": 1,
}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_retarget_subtracts_two_priors(path):
    lines, expected = two_priors(path.read_text()), SAMPLE_WEIGHTS | {"core/retarget.py": 1}
    assert len(lines) == expected.get(name(path), 0), f"two priors meet in lines {lines}"


COMPUTED = re.compile(
    r"\.(mean|std|var|sum|cumsum|sort|argsort|argmax|quantile|median|histogram|bincount|searchsorted"
    r"|unique|ptp|exp|log10|log|average|prod|dot|fmean|stdev)\("
)


@pytest.mark.parametrize(
    "path", [path for path in FILES if name(path).startswith("report/pages/")], ids=name
)
def test_no_number_is_born_in_a_page(path):
    lines = born_numbers(path.read_text())
    assert not lines, f"lines {lines} compute; a flow or its result should"


@pytest.mark.parametrize(
    "code",
    [
        "reach = (high - low) / 2",
        "reach = 0.5 * (measured.high - measured.low)",
        "middle = (low + high) / 2",
        "share = samples / result.total",
        "gain = -before.value * after.value",
        "shown = [shares[k] - shares[k - step] for k in places]",
        "total = 0\nfor each in result.rows:\n    total += each.samples",
        "share -= result.by_chance",
        "sum(row.samples for row in result.rows)",
        "result.recalls.mean()",
        "import numpy as np",
        "from statistics import fmean",
        "from operator import sub",
        "math.sqrt(row.variance)",
        "result.samples % result.classes",
    ],
)
def test_a_number_is_seen_wherever_it_is_born(code):
    assert born_numbers(code)


@pytest.mark.parametrize(
    "code",
    [
        "100 * share",
        "metric.factor * value",
        "Figure(chart, wide=2 * WIDTH)",
        "len(rows) * len(columns) > _NARROW",
        "text = name + unit",
        "where + (words or '–')",
        "'%s of %s' % (one, other)",
        "names = [*few] + list(many)",
        "re.sub('a', 'b', text)",
        "text += f', about {hours:.1f}'",
        "written_whole(folder / name)",
        "sorted(ranks.items(), key=lambda item: item[1])",
    ],
)
def test_what_only_shows_a_number_is_let_be(code):
    assert not born_numbers(code)


@pytest.mark.parametrize(
    "path", [path for path in FILES if name(path).startswith("report/")], ids=name
)
def test_no_figure_or_chart_reduces_many_numbers_to_one(path):
    lines = path.read_text().splitlines()
    # Where something is drawn is geometry: scale.py takes logarithms.
    assert name(path) == "report/charts/scale.py" or not [s for s in lines if COMPUTED.search(s)]


@pytest.mark.parametrize(
    "code",
    [
        "target.log - carried.log",
        "target.logit - self.odds.logit",
        "-carried.log + target.log",
        "self.log_prior_a - self.log_prior_b",
        "def move(log_prior, z):\n    return z + target.log - log_prior",
        "np.asarray(target.log) - tau * np.log(carried.probs)",
        "torch.sub(target.log, carried.log)",
        "target.log.sub(self.carried_log)",
        "goal, source = target.log, carried.log\nshift = goal - source[:, None]",
        "shift = target.log\nshift -= carried.log",
        "batches.smoothed(e).probs / loss.batches.smoothed(e).probs",
        "np.log(target.probs / carried.probs)",
        "target.probs * (1 / carried.probs)",
        "target.probs * carried.probs**-1",
        "np.exp(target.log) / np.exp(carried.log)",
        "np.asarray(prior.log) + math.log(samples.num_classes)",
        "level = np.log(num_classes)\nshown = level + np.log(prior.probs)",
        "ratio(goal.probs, carried.probs)",
        "goal.log_probs - carried.log_probs",
        "weight = target.probs / counts",
        "counts = np.bincount(labels)\nweight = target.probs / np.maximum(counts, 1)",
        "mass = samples if target is None else target.probs\nweight = ratio(mass, samples)",
        "prior.reweighted(1 / other.probs)",
        "prior.reweighted(other.tempered(-1).probs)",
        "weights = 1 / other.probs\nprior.reweighted(weights)",
        # A field that is given a prior is one.
        """
class Pair:
    trend: Tensor
    free: Climb

    @property
    def apart(self):
        return (self.free.priors / self.trend).log()

def estimates():
    trend = climb(start).priors
    return Pair(trend, climb(trend))
""",
        """
class Head:
    def __init__(self, train):
        self.offset = train.log

    def forward(self, logits, target):
        return logits + (target.log - self.offset)
""",
    ],
)
def test_two_priors_are_seen_wherever_they_meet(code):
    assert two_priors(code)


@pytest.mark.parametrize(
    "code",
    [
        "logits + prior.log",
        "prior.log - prior.log.max()",
        "prior.log.min() - prior.log",
        "prior.probs / prior.probs.max()",
        "tau * prior.log - prior.probs**-0.25",
        "loss(1 / prior.probs)",
        "prior.reweighted(class_balanced_weights(counts))",
        "a.probs - b.probs",  # how far apart they are, not a move
        "carried.log + prior_offset(loss.batches, batches)",
        "np.log(counts) - np.log(other)",
        "logits.log() - other.log()",
    ],
)
def test_what_is_no_pair_of_priors_is_let_be(code):
    assert not two_priors(code)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_nothing_is_pickled_or_evaluated(path):
    banned = r"import pickle|pickle\.\w|torch\.load|allow_pickle=True|\beval\(|\bexec\(|yaml\.load"
    assert not re.findall(banned, path.read_text().replace(").eval()", ""))


@pytest.mark.parametrize("public", PUBLIC)
def test_the_public_names_are_there_and_found_by_dir(public):
    assert getattr(longtail, public) is not None
    assert public in dir(longtail)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Priors"):
        longtail.Priors  # noqa: B018


def test_importing_longtail_imports_no_torch_and_using_it_none_of_the_heavy_extras():
    code = (
        "import sys, longtail; assert 'torch' not in sys.modules; longtail.Prior.uniform(3); "
        "heavy = {'sklearn', 'scipy', 'torchmetrics', 'lightning', 'torchvision', 'matplotlib'}; "
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_command_comes_back_to_a_file_and_the_page_says_which_it_visits():
    trace = Path(__file__).parent.parent / "docs/architecture/trace.py"
    done = subprocess.run(
        [sys.executable, trace, "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
