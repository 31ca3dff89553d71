"""Schedules meet the published recipes at every boundary, and torch's own where it has one."""

import math

import pytest
import torch

from longtail.engine.schedules import ByEpoch, Constant, Cosine, OneCycle, Steps

ELM = Steps((96, 192, 224), 0.1, warmup=15)
LADE = Steps((120, 160), 0.01, warmup=5, warmup_start=1 / 3)


def torch_factors(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


def test_elm_reaches_its_rate_in_epoch_15_and_falls_tenfold_three_times():
    assert ELM(0) == pytest.approx(1 / 15)
    assert ELM(13) == pytest.approx(14 / 15)
    assert [ELM(14), ELM(15), ELM(95)] == [1.0, 1.0, 1.0]
    assert [ELM(96), ELM(191)] == [0.1, 0.1]
    assert [ELM(192), ELM(223)] == [0.1**2, 0.1**2]
    assert [ELM(224), ELM(255)] == [0.1**3, 0.1**3]


def test_lade_warms_up_from_a_third_and_its_two_decays_multiply():
    published = [0.0933, 0.12, 0.1467, 0.1733, 0.2]
    assert [0.2 * LADE(epoch) for epoch in range(5)] == pytest.approx(published, abs=5e-5)
    assert [0.2 * LADE(epoch) for epoch in (119, 120, 159, 160, 199)] == pytest.approx(
        [0.2, 0.002, 0.002, 0.00002, 0.00002]
    )


def test_ldam_is_its_published_rule():
    ldam = Steps((160, 180), 0.01, warmup=5)
    for epoch in range(200):
        counted = epoch + 1  # the rule counts from 1
        rule = counted / 5 if counted <= 5 else 0.0001 if counted > 180 else 1
        rule = 0.01 if 160 < counted <= 180 else rule
        assert ldam(epoch) == pytest.approx(rule)


def test_steps_are_those_of_torch():
    ours = Steps((3, 7), 0.2)
    theirs = torch_factors(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [3, 7], 0.2), 10)
    assert [ours(step) for step in range(10)] == pytest.approx(theirs)


def test_the_cosine_is_that_of_torch_and_stays_at_its_end():
    ours = Cosine(total=12, end=0.1)
    theirs = torch_factors(
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 12, eta_min=0.1), 13
    )
    assert [ours(step) for step in range(13)] == pytest.approx(theirs)
    assert [ours(12), ours(500)] == [0.1, 0.1]
    assert ours(0) == 1.0


def test_the_cosine_starts_where_the_warm_up_ends():
    # Balanced meta-softmax: 0.05 to 0.1 in 800 of 13,000 steps, then to 0.
    ours = Cosine(13_000, warmup=800, warmup_start=0.5)
    assert ours(0) == pytest.approx(0.5 + 0.5 / 800)
    assert [ours(799), ours(800)] == [1.0, 1.0]
    assert ours(6_900) == pytest.approx(0.5)
    assert ours(801) == pytest.approx((1 + math.cos(math.pi / 12_200)) / 2)
    assert ours(13_000) == 0.0


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_one_cycle_is_exact_at_its_three_corners_and_rises_and_falls_between(shape):
    cycle = OneCycle(total=20, peak=6, start=0.1, end=0.01, shape=shape)
    assert [cycle(0), cycle(6), cycle(20), cycle(21)] == [0.1, 1.0, 0.01, 0.01]
    factors = [cycle(step) for step in range(21)]
    assert factors[:7] == sorted(factors[:7])
    assert factors[6:] == sorted(factors[6:], reverse=True)
    assert cycle(3) == pytest.approx(0.55)  # half the way, for both shapes
    assert cycle(13) == pytest.approx(0.505)
    quarter = (1 - math.cos(math.pi / 6)) / 2 if shape == "cosine" else 1 / 6
    assert cycle(1) == pytest.approx(0.1 + 0.9 * quarter)


def test_one_cycle_may_start_at_its_peak():
    assert [OneCycle(total=4, peak=0)(step) for step in range(5)] == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_stretched_keeps_the_curve_and_divides_its_steps():
    steps = ELM.stretched(85)
    assert steps == Steps((8160, 16320, 19040), 0.1, warmup=1275)
    assert steps(0) == pytest.approx(1 / 1275)
    assert [steps(8159), steps(8160)] == [1.0, 0.1]
    assert Cosine(10, warmup=2).stretched(3) == Cosine(30, warmup=6)
    assert OneCycle(10, 3, start=0.5).stretched(3) == OneCycle(30, 9, start=0.5)
    assert Constant(5, 0.1).stretched(2) == Constant(10, 0.1)


def test_by_epoch_holds_the_factor_of_an_epoch():
    held = ByEpoch(LADE, steps_per_epoch=43)
    for step in (0, 42, 43, 120 * 43 - 1, 120 * 43):
        assert held(step) == LADE(step // 43)


@pytest.mark.parametrize("schedule", [Constant(), ELM, Cosine(10), OneCycle(10, 3)])
def test_lambda_lr_takes_a_schedule(schedule):
    theirs = torch_factors(lambda o: torch.optim.lr_scheduler.LambdaLR(o, schedule), 5)
    assert theirs == [schedule(step) for step in range(5)]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Constant(warmup=-1), "warmup must be .* at least 0"),
        (lambda: Constant(warmup_start=1.5), "warmup_start"),
        (lambda: Steps((5, 5), 0.1), "milestones must rise"),
        (lambda: Steps((0, 5), 0.1), "milestones must be .* at least 1"),
        (lambda: Steps((5, 9), 0.1, warmup=6), "after the warm-up"),
        (lambda: Steps((5,), 0.0), r"decay.*above 0"),
        (lambda: Cosine(5, warmup=5), "total must be more steps"),
        (lambda: Cosine(5, end=-0.1), "end must be .* at least 0"),
        (lambda: OneCycle(5, 5), "peak must lie from 0"),
        (lambda: OneCycle(5, 1, shape="square"), "shape must be"),
        (lambda: ByEpoch(Constant(), 0), "steps_per_epoch"),
    ],
)
def test_what_makes_no_schedule_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
