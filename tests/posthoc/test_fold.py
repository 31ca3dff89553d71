"""P7: a folded layer is the long way round, in every order that is allowed and in no other."""

from itertools import permutations

import pytest
import torch
from torch import nn

from longtail import Prior, Scores, UnknownPriorError
from longtail.posthoc import (
    BiasCorrectedTemperature,
    LogitAdjustment,
    MarginalMatching,
    PCSoftmax,
    Temperature,
    VectorScaling,
    WeightNormalization,
    chain_affine,
    fold,
)

COUNTS = [60, 25, 10, 5]
TARGET = [1, 2, 3, 4]


def layer(bias=True, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return nn.Linear(8, 4, bias=bias, dtype=dtype)


def features(dtype=torch.float32):
    return torch.randn(64, 8, generator=torch.Generator().manual_seed(1), dtype=dtype)


LINEAR = layer()
HELD_OUT = Scores(
    LINEAR(features()).detach(),
    torch.randint(4, (64,), generator=torch.Generator().manual_seed(2)),
    carried=COUNTS,
)
KINDS = {
    "temperature": Temperature.fit(HELD_OUT),
    "temperature by hand": Temperature(1.7),
    "bias-corrected temperature": BiasCorrectedTemperature.fit(HELD_OUT),
    "vector scaling": VectorScaling.fit(HELD_OUT),
    "tau": LogitAdjustment(COUNTS, 0.6),
    "tau, fitted": LogitAdjustment.fit(HELD_OUT, COUNTS, TARGET),
    "marginal matching": MarginalMatching.fit(HELD_OUT, TARGET),
    "target": PCSoftmax(TARGET),
    "weight normalisation": WeightNormalization.by_norm(LINEAR.weight, 0.8),
    "weight normalisation by prior": WeightNormalization.by_prior(COUNTS, 0.3),
}
ROWS = [names for size in (1, 2, 3) for names in permutations(KINDS, size)]


def the_long_way(linear, adjusters, carried, dtype=torch.float32):
    scores = Scores(linear(features(dtype)).detach(), carried=carried)
    for adjuster in adjusters:
        scores = adjuster(scores)
    return scores


def outcome(make):
    """What it makes, or the sentence with which it is refused."""
    try:
        return make()
    except ValueError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def test_every_row_of_up_to_three_folds_exactly_if_scores_take_it_and_else_not_at_all():
    refused = 0
    for names in ROWS:
        row = [KINDS[name] for name in names]
        expected = outcome(lambda row=row: the_long_way(LINEAR, row, COUNTS))
        folded = outcome(lambda row=row: fold(LINEAR, *row, carried=COUNTS))
        if isinstance(expected, str):
            assert folded == expected, names
            refused += 1
            continue
        torch.testing.assert_close(folded(features()), expected.logits, atol=1e-6, rtol=1e-6)
        assert chain_affine(row, COUNTS, 4).carried == expected.carried, names
    assert 100 < refused < len(ROWS) - 100


@pytest.mark.parametrize("name", KINDS)
def test_a_layer_without_bias_gets_one(name):
    linear = layer(bias=False)
    expected = the_long_way(linear, [KINDS[name]], COUNTS)
    folded = fold(linear, KINDS[name], carried=COUNTS)
    torch.testing.assert_close(folded(features()), expected.logits, atol=1e-6, rtol=1e-6)
    assert linear.bias is None


def test_the_folded_layer_is_plain_and_the_given_one_stays_as_it_was():
    linear = layer()
    before = {name: value.clone() for name, value in linear.state_dict().items()}
    folded = fold(linear, KINDS["temperature"], KINDS["target"])
    assert type(folded) is nn.Linear
    assert (folded.in_features, folded.out_features) == (8, 4)
    for name, value in linear.state_dict().items():
        assert torch.equal(value, before[name])
    assert not torch.equal(folded.weight, linear.weight)
    copy = nn.Linear(8, 4)
    copy.load_state_dict(folded.state_dict())
    assert torch.equal(copy(features()), folded(features()))


def test_folding_nothing_is_a_copy():
    linear = layer()
    folded = fold(linear)
    assert torch.equal(folded.weight, linear.weight)
    assert folded.weight.data_ptr() != linear.weight.data_ptr()
    assert folded.bias.data_ptr() != linear.bias.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept_and_the_folding_is_wide(dtype):
    linear = layer(dtype=dtype)
    folded = fold(linear, KINDS["vector scaling"], KINDS["tau"])
    wide = fold(linear.double(), KINDS["vector scaling"], KINDS["tau"])
    assert folded.weight.dtype == folded.bias.dtype == dtype
    assert torch.equal(folded.weight, wide.weight.to(dtype))
    assert torch.equal(folded.bias, wide.bias.to(dtype))


@pytest.mark.parametrize("frozen", [False, True])
def test_the_need_of_gradients_and_the_mode_are_kept(frozen):
    linear = layer().requires_grad_(not frozen).train(frozen)
    folded = fold(linear, KINDS["tau"])
    assert folded.weight.requires_grad == folded.bias.requires_grad == (not frozen)
    assert folded.training == frozen
    assert folded.weight.is_leaf


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_device_is_kept():
    folded = fold(nn.Linear(8, 4, device="cuda"), Temperature(2.0))
    assert folded.weight.device.type == folded.bias.device.type == "cuda"


def test_random_numbers_are_as_if_nothing_had_been_folded():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fold(LINEAR, KINDS["tau"])
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    "names",
    [
        ["tau"],
        ["temperature by hand", "tau"],
        ["temperature", "target"],
        ["temperature by hand", "vector scaling", "target"],
        ["weight normalisation"],
    ],
    ids=", ".join,
)
def test_what_the_layer_carries_is_read_off_the_first_adjuster_that_knows(names):
    adjusters = [KINDS[name] for name in names]
    given = fold(LINEAR, *adjusters, carried=COUNTS)
    assert torch.equal(fold(LINEAR, *adjusters).bias, given.bias)


def test_one_fitted_on_an_unknown_prior_folds_and_says_what_is_carried_after():
    unknown = Scores(HELD_OUT.logits, HELD_OUT.labels)
    fitted = BiasCorrectedTemperature.fit(unknown)
    own = Prior.from_labels(HELD_OUT.labels, 4)
    assert chain_affine([fitted], None, 4).carried == own
    adjusters = [fitted, LogitAdjustment(own)]
    expected = the_long_way(LINEAR, adjusters, None)
    folded = fold(LINEAR, *adjusters)
    torch.testing.assert_close(folded(features()), expected.logits, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("names", [["target"], ["temperature by hand", "target"]], ids=", ".join)
def test_a_target_alone_needs_to_be_told_what_is_carried(names):
    with pytest.raises(UnknownPriorError, match="pass that as carried"):
        fold(LINEAR, *(KINDS[name] for name in names))


def test_what_comes_after_a_move_says_nothing_of_what_the_layer_carries():
    with pytest.raises(UnknownPriorError):
        fold(LINEAR, PCSoftmax(TARGET), LogitAdjustment(TARGET))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["tau", "tau"], "count the prior twice"),
        (["tau", "temperature"], "calibrate first and move"),
        (["target", "vector scaling"], "calibrate first and move"),
        (["target", "tau"], "count the prior twice"),
        (["weight normalisation", "tau"], "no known prior"),
        (["weight normalisation", "bias-corrected temperature"], "no known prior"),
    ],
    ids=str,
)
def test_a_wrong_order_is_refused_and_the_sentence_says_why(names, sentence):
    with pytest.raises(ValueError, match=sentence):
        fold(LINEAR, *(KINDS[name] for name in names), carried=COUNTS)


def test_a_class_that_the_target_rules_out_gets_a_bias_of_minus_infinity():
    without = PCSoftmax(Prior.of([1, 0, 1, 2], zeros="keep"))
    folded = fold(LINEAR, KINDS["temperature"], without, Temperature(2.0))
    assert folded.bias.isneginf().tolist() == [False, True, False, False]
    logits = folded(features())
    expected = the_long_way(LINEAR, [KINDS["temperature"], without, Temperature(2.0)], COUNTS)
    torch.testing.assert_close(logits, expected.logits, atol=1e-6, rtol=1e-6)
    probs = logits.softmax(dim=1)
    assert (probs[:, 1] == 0).all()
    assert probs.isfinite().all()


def test_a_parametrised_layer_is_folded_with_the_weight_it_has():
    linear = nn.utils.parametrizations.weight_norm(layer())
    folded = fold(linear, Temperature(2.0))
    torch.testing.assert_close(folded(features()), linear(features()) / 2)
    assert type(folded) is nn.Linear


class Cosine(nn.Linear):
    def forward(self, x):
        return nn.functional.normalize(x) @ nn.functional.normalize(self.weight).T


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fold(nn.Sequential(layer()), KINDS["tau"]), "torch.nn.Linear, got Sequential"),
        (lambda: fold(Cosine(8, 4), KINDS["tau"]), "got Cosine"),
        (lambda: fold(LINEAR, lambda scores: scores), "folded, got a function"),
        (lambda: fold(LINEAR, KINDS["target"], carried=[1, 1]), "4 classes but the carried prior"),
        (lambda: fold(nn.Linear(8, 3), KINDS["tau"]), r"3 classes.*carried prior has 4"),
        (lambda: fold(nn.Linear(8, 3), WeightNormalization(TARGET)), "nu has 4 classes"),
        (lambda: fold(LINEAR, Temperature(1e-300)), "float32"),
        (lambda: fold(LINEAR, BiasCorrectedTemperature(bias=[1e300, 0, 0, 0])), "float32"),
        (lambda: fold(LINEAR, Temperature(1e-300), Temperature(1e-300)), "finite"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
