from dataclasses import replace

import numpy as np
import pytest

import longtail as lt
from compared_worlds import World
from longtail.flows.compare_runs import METRICS, SampleSet, measured_run

TARGETS = [lt.Prior.uniform(5), lt.Prior.of([4, 3, 1, 1, 1]), None]


@pytest.mark.parametrize("target", TARGETS)
def test_the_metrics_are_those_of_evaluate(target):
    world = World(target=target)
    scores = world.scores(1.0)
    expected = lt.metrics.evaluate(scores, target=target)
    run = measured_run(scores, world.samples, "LA")
    for metric in METRICS:
        assert run.metrics[metric.key].value == pytest.approx(expected[metric.key], abs=1e-12)
    assert run.moved


@pytest.mark.parametrize("target", TARGETS)
def test_the_terms_sum_to_the_metrics(target):
    world = World(target=target)
    run = measured_run(world.scores(1.0), world.samples, "LA")
    for metric in METRICS:
        if not metric.tested or run.metrics[metric.key].value is None:
            continue
        weights = world.samples.weights(metric.key)
        total = sum(
            weights[label] * term
            for label, term in zip(world.labels, run.terms(metric.key), strict=True)
        )
        assert float(total) == pytest.approx(run.metrics[metric.key].value, abs=1e-12)


def test_scores_that_are_moved_are_measured_as_trained_too():
    target = lt.Prior.of([4, 3, 1, 1, 1])
    world = World(target=target)
    scores = world.scores(1.0)
    run = measured_run(scores, world.samples, "CE")
    asis = lt.metrics.evaluate(replace(scores, carried=target), target=target)
    for metric in METRICS:
        assert run.as_trained[metric.key].value == pytest.approx(asis[metric.key], abs=1e-12)
    assert run.as_trained["balanced_accuracy"] != run.metrics["balanced_accuracy"]
    there = measured_run(scores.under(target), world.samples, "LA")
    assert there.as_trained is there.metrics


def test_scores_of_which_nobody_knows_what_they_carry_are_taken_as_they_are(world):
    scores = replace(world.scores(1.0), carried=None)
    run = measured_run(scores, world.samples, "LDAM")
    assert not run.moved
    asis = lt.metrics.evaluate(
        replace(scores, carried=lt.Prior.uniform(5)), target=lt.Prior.uniform(5)
    )
    assert run.metrics["nll"].value == pytest.approx(asis["nll"])


def test_a_class_without_samples_has_no_weight():
    samples = SampleSet("toy", np.array([0, 0, 2]), 3, lt.Prior.uniform(3))
    assert samples.weights("balanced_accuracy").tolist() == [0.25, 0.0, 0.5]
    assert samples.weights("nll").tolist() == [0.25, 0.0, 0.5]


def test_a_class_that_the_target_rules_out_makes_no_sum_infinite():
    world = World(target=lt.Prior.of([0.0, 1.0, 1.0, 1.0, 1.0], zeros="keep"))
    run = measured_run(world.scores(1.0), world.samples, "LA")
    total = float(run.terms("nll") @ world.samples.weights("nll")[world.labels])
    assert total == pytest.approx(run.metrics["nll"].value, abs=1e-12)


def test_a_copy_is_known_by_its_probabilities(world):
    first, second = world.runs("CE", 1.0, seeds=2)
    assert first.is_copy_of(replace(first, seed="7"))
    assert not first.is_copy_of(second)
