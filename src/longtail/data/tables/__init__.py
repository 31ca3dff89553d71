"""One reader and writer for scores, labels, counts and features, a block of rows at a time.

.csv, .tsv (both also .gz) and .parquet are rows of columns, .npy, .npz and .safetensors named
arrays; what a column or array means is decided above the readers of the formats.
"""

from longtail.data.tables.counts import LabelCounts as LabelCounts
from longtail.data.tables.counts import align_counts as align_counts
from longtail.data.tables.feature_arrays import read_features as read_features
from longtail.data.tables.features import Features as Features
from longtail.data.tables.features import Part as Part
from longtail.data.tables.features import pack_features as pack_features
from longtail.data.tables.labels import read_label_counts as read_label_counts
from longtail.data.tables.labels import read_labels as read_labels
from longtail.data.tables.score_readers import Layout as Layout
from longtail.data.tables.score_table import Block as Block
from longtail.data.tables.score_table import Kind as Kind
from longtail.data.tables.score_table import ScoreTable as ScoreTable
from longtail.data.tables.score_writer import ScoreWriter as ScoreWriter
from longtail.data.tables.score_writer import open_score_writer as open_score_writer
from longtail.data.tables.scores import open_score_table as open_score_table
