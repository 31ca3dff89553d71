from dataclasses import replace

import numpy as np
import pytest

import longtail as lt
from compared_worlds import World, result_of
from longtail.flows.changes import shown_accuracies
from longtail.flows.compare_runs import SampleSet, measured_run
from longtail.flows.compare_sets import compare_set
from longtail.metrics import Interval
from longtail.report.pages import compare_text as text

BY = "balanced_accuracy"


def test_methods_are_ordered_and_measured_over_their_runs(world):
    runs = [*world.runs("CE", 0.2), *world.runs("LA", 1.5)]
    table = compare_set(world.samples, runs, BY)
    assert [method.name for method in table.methods] == ["LA", "CE"]
    values = [run.metrics[BY].value for run in runs[3:]]
    found = table.methods[0].estimates[BY]
    assert found.value == pytest.approx(sum(values) / 3)
    assert found.over == "seeds"
    assert table.ranks.mean == {"LA": 1.0, "CE": 2.0}
    assert table.ranks.blocks == 3


def test_ordering_by_the_log_loss_puts_the_least_first(world):
    runs = [*world.runs("CE", 0.2), *world.runs("LA", 1.5)]
    table = compare_set(world.samples, runs, "nll")
    values = [method.estimates["nll"].value for method in table.methods]
    assert values == sorted(values)


def test_under_the_uniform_prior_accuracy_is_balanced_accuracy_and_not_shown_twice():
    uniform = World()
    keys = [m.key for m in compare_set(uniform.samples, uniform.runs("A", 1.0), BY).metrics]
    assert "accuracy_under_target" not in keys
    other = World(target=lt.Prior.of([5, 1, 1, 1, 1]))
    table = compare_set(other.samples, other.runs("A", 1.0), "accuracy_under_target")
    assert "accuracy_under_target" in [m.key for m in table.metrics]
    assert table.by.key == "accuracy_under_target"


def test_a_target_that_is_nearly_uniform_is_shown_as_on_the_page_of_a_run():
    """Samples weigh so little each that weights of other accuracies seem alike."""
    labels = np.repeat(np.arange(2), 1000)
    samples = SampleSet("toy", labels, 2, lt.Prior.of([0.500005, 0.499995]))
    run = measured_run(lt.Scores(2 * np.eye(2)[labels], labels=labels), samples, "A")
    sums = lt.metrics.Accumulator(2, samples.target)
    sums.add(2 * np.eye(2)[labels], labels)
    shown = shown_accuracies(sums.class_shares, samples.target)
    keys = [m.key for m in compare_set(samples, [run], BY).metrics]
    assert set(shown) == {"accuracy_under_target", "balanced_accuracy"}
    assert set(shown) <= set(keys)


def test_of_two_accuracies_that_are_one_number_that_which_orders_is_shown():
    world = World(target=None)  # as many samples of each class
    keys = [m.key for m in compare_set(world.samples, world.runs("A", 1.0), "accuracy").metrics]
    assert "accuracy" in keys
    assert "balanced_accuracy" not in keys


def test_ranks_are_of_the_seeds_that_have_a_value(world):
    runs = [*world.runs("CE", 0.2), *world.runs("LA", 1.5)]
    values = {"CE": [0.9, 0.5, 0.1], "LA": [None, 0.4, 0.2]}
    given = [
        replace(run, metrics={**run.metrics, BY: Interval(values[run.method][int(run.seed)])})
        for run in runs
    ]
    ranks = compare_set(world.samples, given, BY).ranks
    # CE is ahead by seed 1 and behind by seed 2; nobody knows of seed 0.
    assert ranks.blocks == 2
    assert ranks.mean == {"CE": 1.5, "LA": 1.5}


def test_another_target_makes_its_accuracy_the_first_column():
    world = World(target=lt.Prior.of([5, 1, 1, 1, 1]))
    table = compare_set(world.samples, world.runs("A", 1.0), "accuracy_under_target")
    # The samples are balanced, so that their accuracy as they are is balanced accuracy.
    assert [m.key for m in table.metrics][:3] == [
        "accuracy_under_target",
        "balanced_accuracy",
        "many",
    ]
    assert text.headline(table).count("under the target") == 1


def test_without_counts_there_are_no_groups(world):
    samples = SampleSet("toy", world.labels, 5, lt.Prior.uniform(5))
    run = measured_run(world.scores(1.0), samples, "A")
    keys = [m.key for m in compare_set(samples, [run], BY).metrics]
    assert not {"many", "medium", "few"} & set(keys)
    with pytest.raises(ValueError, match=r"no run.*few"):
        compare_set(samples, [run], "few")


def test_runs_with_the_same_scores_count_once(world):
    first, second = world.runs("CE", 1.0, 2)
    copy = replace(first, seed="9", source="elsewhere")
    table = compare_set(world.samples, [first, second, copy], BY)
    assert len(table.methods[0].runs) == 2
    assert table.copies == (("elsewhere", "0"),)
    assert any(
        "elsewhere" in note and "counted once" in note for note in text.notes(result_of(table))
    )


def test_one_method_has_nothing_to_be_compared_with(world):
    table = compare_set(world.samples, world.runs("CE", 1.0, 1), BY)
    assert table.ranks is None
    assert "only one method, CE" in text.headline(table)
    assert text.what_would_tell(table) == []
    assert text.legend(table) == ""


def test_unequal_numbers_of_seeds_are_said(world):
    table = compare_set(world.samples, [*world.runs("A", 1.0, 4), *world.runs("B", 1.0, 1)], BY)
    said = " ".join(text.what_varies(table))
    assert "Only one run of B" in said
    assert "over seeds" in said
    assert "over test samples" in said
    table = compare_set(world.samples, [*world.runs("A", 1.0, 4), *world.runs("B", 1.0, 2)], BY)
    assert "between 2 and 4 runs" in " ".join(text.what_varies(table))


def test_what_varies_is_named(world):
    one = compare_set(world.samples, [*world.runs("A", 1.0, 1), *world.runs("B", 1.0, 1)], BY)
    said = " ".join(text.what_varies(one))
    assert "between these models" in said
    assert "another seed" in said
    two = compare_set(world.samples, [*world.runs("A", 1.0, 2), *world.runs("B", 1.0, 2)], BY)
    said = " ".join(text.what_varies(two))
    assert "Two seeds say little" in said
    assert "both counted" in said


def test_the_sentence_names_who_is_tied_and_who_is_behind():
    world = World(per_class=80)
    runs = [*world.runs("CE", 0.0), *world.runs("LA", 1.6), *world.runs("BS", 1.6)]
    table = compare_set(world.samples, runs, BY)
    best, tied, _ = (method.name for method in table.methods)
    said = text.headline(table)
    assert said.startswith(f"{tied} cannot be told apart from")
    assert f"{best} (balanced accuracy" in said
    assert said.endswith("more than noise: CE.")
    assert len(text.what_would_tell(table)) == 1
    assert f"To tell {tied} from {best}, if they really differ by" in text.what_would_tell(table)[0]


def test_a_clear_winner_is_said():
    world = World(per_class=80)
    table = compare_set(world.samples, [*world.runs("CE", 0.0), *world.runs("LA", 2.0)], BY)
    assert "LA is best" in text.headline(table)
    assert "ahead of CE" in text.headline(table)
    assert text.next_step(table) == "Take LA."
    one = compare_set(world.samples, [*world.runs("CE", 0.0, 1), *world.runs("LA", 2.0, 1)], BY)
    assert text.next_step(one).startswith("Take LA. Train")


def test_an_infinite_log_loss_stays_in_the_table_and_out_of_the_test(world):
    runs = [*world.runs("CE", 0.5), *world.runs("LA", 1.5)]
    infinite = np.inf
    runs[0] = replace(
        runs[0],
        nll=np.full_like(runs[0].nll, infinite),
        metrics=dict(runs[0].metrics) | {"nll": Interval(infinite)},
    )
    table = compare_set(world.samples, runs, BY)
    assert table.verdicts["nll"].left_out == ("CE",)
    by_loss = compare_set(world.samples, runs, "nll")
    assert "not compared: CE" in text.headline(by_loss)


def test_the_worst_class_is_shown_and_not_tested(world):
    table = compare_set(world.samples, [*world.runs("A", 1.0), *world.runs("B", 0.9)], BY)
    assert "worst_class" in [m.key for m in table.metrics]
    assert "worst_class" not in table.verdicts
    assert "Not tested: worst class." in text.legend(table)
    assert "not tested" in text.headline(
        compare_set(world.samples, [*world.runs("A", 1.0), *world.runs("B", 0.9)], "worst_class")
    )


def test_ranks_over_sets_are_of_methods_on_all_of_them():
    sets = []
    for seed in (0, 1):
        world = World(seed=seed)
        runs = [*world.runs("CE", 0.0), *world.runs("LA", 2.0)]
        runs += world.runs("BS", 1.0) if seed else []
        sets.append(compare_set(world.samples, runs, BY))
    result = result_of(*sets)
    assert result.ranks.mean == {"CE": 2.0, "LA": 1.0}
    assert (result.ranks.blocks, result.ranks.over) == (2, "data sets")
    assert any("different data" in note for note in text.notes(result))
    assert result_of(sets[0]).ranks is None
