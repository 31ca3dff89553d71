"""Labels and class counts from the files and folders that people keep them in."""

from longtail.data.label_files.counts import LabelCounts as LabelCounts
from longtail.data.label_files.counts import align_counts as align_counts
from longtail.data.label_files.reading import read_label_counts as read_label_counts
from longtail.data.label_files.reading import read_labels as read_labels
