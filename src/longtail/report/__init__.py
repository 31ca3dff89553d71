"""The honest end of every command: figures as SVG, tables, and one self-contained HTML page."""

from longtail.report import figures as figures
from longtail.report.charts.bars import Bars as Bars
from longtail.report.charts.bars import bar_chart as bar_chart
from longtail.report.charts.chart import Chart as Chart
from longtail.report.charts.heat import heat_chart as heat_chart
from longtail.report.charts.legend import Guide as Guide
from longtail.report.charts.legend import Reference as Reference
from longtail.report.charts.lines import Line as Line
from longtail.report.charts.lines import line_chart as line_chart
from longtail.report.charts.panels import panels as panels
from longtail.report.charts.plane import Points as Points
from longtail.report.charts.plane import Separator as Separator
from longtail.report.charts.plane import plane_chart as plane_chart
from longtail.report.charts.strips import Strip as Strip
from longtail.report.charts.strips import strip_chart as strip_chart
from longtail.report.charts.svg import Svg as Svg
from longtail.report.page import Figure as Figure
from longtail.report.page import Footer as Footer
from longtail.report.page import Page as Page
from longtail.report.page import Section as Section
from longtail.report.page import render_page as render_page
from longtail.report.page import write_page as write_page
from longtail.report.pages.scores import scores_page as scores_page
from longtail.report.table import Column as Column
from longtail.report.table import Table as Table
