"""The figures of the demo's page."""

from longtail import Scores
from longtail.flows.demo import FeatureScores
from longtail.report.pages.demo import _caltech_figures


def test_a_group_without_classes_has_no_bar_where_a_bar_of_zero_would_say_all_wrong():
    scores = Scores([[2.0, 0.0]], labels=[0], counts=[200, 5], classes=["cat", "fox"])
    full = FeatureScores("full", 0.1, scores, {"many": 0.9, "medium": 0.0, "few": 0.0})
    gap = FeatureScores("gap", 0.1, scores, {"many": 0.9, "medium": None, "few": 0.0})
    bars = [_caltech_figures([method])[0].svg.count('class="mark"') for method in (full, gap)]
    assert bars == [3, 2]
