"""torch.compile and torch.export follow scores and adjusters from end to end."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import longtail as lt
from longtail.posthoc import LogitAdjustment, PCSoftmax, Temperature, VectorScaling

COUNTS = [90, 9, 1]
PRIOR = lt.Prior.of(COUNTS)
LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
COOL, ADJUST, LEAN = Temperature(2.0), LogitAdjustment(COUNTS, 0.7), PCSoftmax([1, 2, 3])
SCALE = VectorScaling([1.0, 2.0, 0.5], [0.0, 0.1, 0.2])


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="eager")


def exported(function):
    class Model(torch.nn.Module):
        def forward(self, logits):
            return function(logits)

    rows = torch.export.Dim("rows", min=2)
    return torch.export.export(Model(), (LOGITS,), dynamic_shapes=({0: rows},)).module()


def adjusted_and_moved(logits):
    scores = LEAN(ADJUST(lt.Scores(logits, carried=COUNTS)))
    return scores.probs(), scores.predict()


WORK = {
    "retarget from counts": lambda logits: lt.retarget(logits, COUNTS, [1, 1, 1]),
    "retarget to uniform": lambda logits: lt.retarget(logits, PRIOR, lt.Prior.uniform(3)),
    "counts by class": lambda logits: lt.retarget(logits, {0: 90, 1: 9, 2: 1}, PRIOR),
    "an adjuster, nothing known": lambda logits: COOL(lt.Scores(logits)).logits,
    "an adjuster, a prior": lambda logits: ADJUST(lt.Scores(logits, carried=PRIOR)).logits,
    "an adjuster, counts": lambda logits: ADJUST(lt.Scores(logits, carried=COUNTS)).logits,
    "two vectors a class": lambda logits: SCALE(lt.Scores(logits)).logits,
    "two adjusters": adjusted_and_moved,
    "under": lambda logits: lt.Scores(logits, carried=PRIOR).under([1, 1, 1]).logits,
}


@pytest.mark.parametrize("trace", [compiled, exported])
@pytest.mark.parametrize("name", WORK)
def test_what_is_done_to_scores_is_traced_whole(name, trace):
    traced = trace(WORK[name])
    assert_close(traced(LOGITS), WORK[name](LOGITS))
    assert_close(traced(LOGITS[:4] * 3), WORK[name](LOGITS[:4] * 3))


def test_compiled_scores_come_out_with_what_they_carry():
    scores = compiled(lambda logits: ADJUST(lt.Scores(logits, carried=COUNTS)))(LOGITS)
    assert scores.carried == ADJUST(lt.Scores(LOGITS, carried=COUNTS)).carried


def test_other_counts_adjusters_and_priors_are_compiled_anew():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.adjust, self.prior, self.target = ADJUST, PRIOR, [1, 2, 3]

        def forward(self, logits):
            scores = self.adjust(lt.Scores(logits, carried=self.prior))
            return scores.logits, lt.retarget(logits, self.prior, self.target)

    model = Model()
    traced = compiled(model)
    traced(LOGITS)
    changes = [("adjust", LogitAdjustment(COUNTS, 0.2)), ("target", [3, 2, 1])]
    for name, value in [*changes, ("adjust", LEAN), ("prior", lt.Prior.of([2, 1, 1]))]:
        setattr(model, name, value)
        assert_close(traced(LOGITS), model(LOGITS))
    model.target[0] = 50
    assert_close(traced(LOGITS), model(LOGITS))


@pytest.mark.parametrize("counts", [np.array(COUNTS), torch.tensor(COUNTS)])
def test_an_array_of_counts_is_no_constant_to_a_compiler(counts):
    with pytest.raises(Exception, match="make a Prior of it outside"):
        compiled(lambda logits: lt.retarget(logits, counts, [1, 1, 1]))(LOGITS)


def test_values_are_still_looked_at_where_there_are_some():
    traced = compiled(lambda logits: COOL(lt.Scores(logits)).logits)
    broken = LOGITS.clone()
    broken[2, 1] = torch.nan
    assert traced(broken).isnan().any()
    with pytest.raises(ValueError, match="row 2"):
        COOL(lt.Scores(broken))
