"""Files of scores, read and written a block of rows at a time."""

from longtail.data.score_tables.contents import Kind as Kind
from longtail.data.score_tables.contents import Layout as Layout
from longtail.data.score_tables.opening import open_score_table as open_score_table
from longtail.data.score_tables.table import Block as Block
from longtail.data.score_tables.table import ScoreTable as ScoreTable
from longtail.data.score_tables.writing import ScoreWriter as ScoreWriter
from longtail.data.score_tables.writing import open_score_writer as open_score_writer
