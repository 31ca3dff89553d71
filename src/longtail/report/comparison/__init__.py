"""Many runs beside each other: methods × metrics, ranks, and what of it is noise."""

from longtail.report.comparison.columns import METRICS as METRICS
from longtail.report.comparison.compared import Compared as Compared
from longtail.report.comparison.compared import ComparedSet as ComparedSet
from longtail.report.comparison.compared import compare as compare
from longtail.report.comparison.compared import compare_set as compare_set
from longtail.report.comparison.latex import latex as latex
from longtail.report.comparison.markdown import markdown as markdown
from longtail.report.comparison.page import comparison_page as comparison_page
from longtail.report.comparison.runs import Run as Run
from longtail.report.comparison.runs import SampleSet as SampleSet
from longtail.report.comparison.runs import measured_run as measured_run
