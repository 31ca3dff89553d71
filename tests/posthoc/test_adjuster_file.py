"""Adjusters in a file: nothing is lost on the way, and a file that is not right says so."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtail import Prior, Scores
from longtail.posthoc import (
    BiasCorrectedTemperature,
    LogitAdjustment,
    MarginalMatching,
    PCSoftmax,
    Temperature,
    VectorScaling,
    WeightNormalization,
    fold,
    load_adjusters,
    save_adjusters,
)
from longtail.testing import check_adjuster

COUNTS = [70, 25, 5]
RNG = np.random.default_rng(0)
HELD_OUT = Scores(RNG.normal(size=(40, 3)), np.arange(40) % 3, carried=COUNTS)
UNKNOWN = Scores(HELD_OUT.logits, HELD_OUT.labels)
ADJUSTERS = {
    "logit adjustment": LogitAdjustment(COUNTS, 0.1 + 0.2),
    "logit adjustment to a target": LogitAdjustment(COUNTS, 0.7, target=[1, 1, 2]),
    "logit adjustment, fitted": LogitAdjustment.fit(HELD_OUT, COUNTS),
    "target": PCSoftmax([0.1, 0.2, 0.7]),
    "target with a zero": PCSoftmax(Prior.of([1, 0, 2], zeros="keep")),
    "weight normalisation": WeightNormalization(RNG.random(3), 1 / 3),
    "weight normalisation, fitted": WeightNormalization.fit(HELD_OUT, RNG.random(3)),
    "temperature by hand": Temperature(math.pi),
    "temperature": Temperature.fit(HELD_OUT),
    "bias-corrected temperature": BiasCorrectedTemperature.fit(HELD_OUT),
    "bias-corrected temperature of an unknown prior": BiasCorrectedTemperature.fit(UNKNOWN),
    "bias-corrected temperature without biases": BiasCorrectedTemperature(2.0),
    "vector scaling": VectorScaling.fit(HELD_OUT),
    "vector scaling of an unknown prior": VectorScaling.fit(UNKNOWN),
    "marginal matching": MarginalMatching.fit(HELD_OUT, [1, 1, 2]),
    "marginal matching of an unknown prior": MarginalMatching.fit(UNKNOWN, [1, 1, 2]),
    "marginal matching by hand": MarginalMatching([0.0, 1 / 3, -1.0], [1, 1, 2]),
    "vector scaling without scales": VectorScaling(bias=[0.0, 1.0, -1.0]),
}


def assert_same(one, other):
    assert type(one) is type(other)
    for field in fields(one):
        value, again = getattr(one, field.name), getattr(other, field.name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, again)
            assert value.dtype == again.dtype
        else:
            assert type(again) is type(value)
            assert again == value
        if isinstance(value, Prior):
            assert (value.counts is None) == (again.counts is None)
            assert value.counts is None or value.counts.tolist() == again.counts.tolist()


@pytest.mark.parametrize("name", ADJUSTERS)
def test_an_adjuster_comes_back_as_it_was(name, tmp_path):
    save_adjusters(tmp_path / "one.json", [ADJUSTERS[name]])
    stored = load_adjusters(tmp_path / "one.json")
    (again,) = stored.adjusters
    assert_same(ADJUSTERS[name], again)
    assert stored.carried is stored.classes is None


def test_a_fitted_tau_still_says_that_the_target_is_carried(tmp_path):
    fitted = LogitAdjustment.fit(HELD_OUT, COUNTS, [1, 1, 2])
    save_adjusters(tmp_path / "one.json", [fitted])
    assert load_adjusters(tmp_path / "one.json")(HELD_OUT).carried == Prior.of([1, 1, 2])


def test_a_number_that_is_not_finite_is_not_written(tmp_path):
    fitted = LogitAdjustment.fit(HELD_OUT, COUNTS)
    failed = LogitAdjustment(COUNTS, 1.0, choice=replace(fitted.choice, value=math.nan))
    with pytest.raises(ValueError, match="not finite"):
        save_adjusters(tmp_path / "one.json", [failed])
    assert not list(tmp_path.iterdir())


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(bias=st.lists(numbers, min_size=1, max_size=5))
def test_numbers_come_back_to_the_last_bit(bias, tmp_path_factory):
    path = tmp_path_factory.mktemp("bits") / "one.json"
    save_adjusters(path, [VectorScaling(bias=bias)])
    (again,) = load_adjusters(path).adjusters
    assert again.bias.tolist() == bias


@given(weights=st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8))
def test_priors_come_back_to_the_rounding_of_their_sum(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("priors") / "one.json"
    prior = Prior.from_log(np.log(weights))
    save_adjusters(path, [PCSoftmax(prior)])
    (again,) = load_adjusters(path).adjusters
    assert again.target.is_close(prior, 1e-12)


def test_a_row_of_adjusters_with_all_that_is_known_comes_back_and_applies(tmp_path):
    row = [ADJUSTERS["temperature"], ADJUSTERS["logit adjustment"], PCSoftmax([1, 1, 2])]
    names = ["köttur", "dog [sic]", 'a "b"\n  c']
    save_adjusters(tmp_path / "row.json", row, carried=COUNTS, classes=names)
    stored = load_adjusters(tmp_path / "row.json")
    assert stored.classes == tuple(names)
    assert stored.carried == Prior.of(COUNTS)
    expected = row[2](row[1](row[0](HELD_OUT)))
    adjusted = stored(HELD_OUT)
    np.testing.assert_array_equal(adjusted.logits, expected.logits)
    assert adjusted.carried == expected.carried


@pytest.mark.parametrize("names", [["a  b", " c ", "d,"], ["[", "] ", "{"], ['"', "\\", "\n"]])
def test_names_of_classes_come_back_as_they_were(names, tmp_path):
    save_adjusters(tmp_path / "row.json", [], classes=names)
    assert load_adjusters(tmp_path / "row.json").classes == tuple(names)


def test_a_stored_row_keeps_the_contract_of_adjusters(tmp_path):
    def stored(prior):
        save_adjusters(tmp_path / "row.json", [Temperature(source=prior), LogitAdjustment(prior)])
        return load_adjusters(tmp_path / "row.json")

    check_adjuster(stored)


def test_a_stored_row_folds(tmp_path):
    linear = torch.nn.Linear(5, 3)
    save_adjusters(tmp_path / "row.json", [PCSoftmax([1, 2, 3])], carried=COUNTS)
    stored = load_adjusters(tmp_path / "row.json")
    folded = fold(linear, *stored.adjusters, carried=stored.carried)
    features = torch.randn(7, 5)
    expected = Scores(linear(features), carried=COUNTS).under([1, 2, 3])
    torch.testing.assert_close(folded(features), expected.logits, atol=1e-6, rtol=0)


def test_the_file_reads_like_this(tmp_path):
    row = [Temperature(1.5, source=[3, 3]), WeightNormalization([1.0, 0.5], 0.5)]
    save_adjusters(tmp_path / "row.json", row, classes=["cat", "dog"])
    assert (
        (tmp_path / "row.json").read_text()
        == """{
  "version": 2,
  "adjusters": [
    {
      "kind": "temperature",
      "temperature": 1.5,
      "source": {
        "log_probs": [-0.6931471805599453, -0.6931471805599453],
        "counts": [3, 3]
      }
    },
    {
      "kind": "weight_normalization",
      "nu": [1.0, 0.5],
      "tau": 0.5
    }
  ],
  "classes": ["cat", "dog"]
}
"""
    )


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "row.json"
    save_adjusters(path, [Temperature(2.0)])
    with pytest.raises(ValueError, match="got a function"):
        save_adjusters(path, [Temperature(3.0), lambda scores: scores])
    assert load_adjusters(path).adjusters[0].temperature == 2
    assert [p.name for p in tmp_path.iterdir()] == ["row.json"]


def test_scores_of_other_classes_are_refused(tmp_path):
    save_adjusters(tmp_path / "row.json", [Temperature(2.0)], classes=["a", "b", "c"])
    stored = load_adjusters(tmp_path / "row.json")
    stored(HELD_OUT)
    with pytest.raises(ValueError, match=r"classes a, b, c,.*a, c, b"):
        stored(Scores(HELD_OUT.logits, classes=["a", "c", "b"]))


GOOD = {"version": 1, "adjusters": [{"kind": "temperature", "temperature": 2.0, "source": None}]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"version": 3, "adjusters": None},
            r"version 3.*reads 1 and 2",
        ),
        ({"version": "1"}, r"no adjuster file.*Expected `int`, got `str`"),
        ({"adjusters": [{"kind": "platt"}]}, r"'platt'.*newer longtail"),
        ({"adjusters": [{"temperature": 2.0}]}, "missing required field `kind`"),
        ({"adjusters": [{"kind": "temperature"}]}, "missing required field `temperature`"),
        (
            {"adjusters": [{"kind": "temperature", "temperature": "2"}]},
            r"`float`, got `str`.*\[0\]\.temperature",
        ),
        (
            {"adjusters": [{"kind": "temperature", "temperature": 2.0, "bias": [1.0]}]},
            "unknown field `bias`",
        ),
        (
            {"adjusters": [{"kind": "temperature", "temperature": -2.0}]},
            r"temperature.*above zero, got -2",
        ),
        (
            {"adjusters": [{"kind": "pc_softmax", "target": {"log_probs": [-1.0, -1.0]}}]},
            r"probabilities.*sum to one",
        ),
        ({"carried": {"log_probs": [0.0]}, "classes": ["a", "b"]}, "these are for 1, 2 classes"),
        ({"note": "mine"}, "does not know .*unknown field `note`"),
    ],
)
def test_a_file_that_is_not_right_gives_one_clear_sentence(change, sentence, tmp_path):
    path = tmp_path / "row.json"
    path.write_text(json.dumps(GOOD))
    assert load_adjusters(path).adjusters[0].temperature == 2
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(ValueError, match=sentence) as error:
        load_adjusters(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b'{"adjusters": []}', b"null"])
def test_a_file_that_is_none_of_ours_is_refused(text, tmp_path):
    (tmp_path / "row.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"no adjuster file.*save_adjusters"):
        load_adjusters(tmp_path / "row.json")


def test_no_file_and_no_folder_are_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="no adjuster file"):
        load_adjusters(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_adjusters(tmp_path / "none" / "row.json", [])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"classes": ["a", "b"]}, r"same classes.*2, 3"),
        ({"carried": [1, 1]}, r"same classes.*2, 3"),
    ],
)
def test_a_row_for_different_classes_is_not_written(given, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        save_adjusters(tmp_path / "row.json", [ADJUSTERS["temperature"]], **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [b'{"version": 1, "adjusters": [], "classes": ["\xff"]}', b'{"version":' + b"[" * 10**5],
)
def test_bad_characters_and_nesting_are_told_with_the_file(tmp_path, damage):
    place = tmp_path / "adjuster.json"
    place.write_bytes(damage)
    with pytest.raises(ValueError, match=r"adjuster\.json"):
        load_adjusters(place)
