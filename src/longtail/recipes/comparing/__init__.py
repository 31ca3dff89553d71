"""Comparing runs: from folders and scores files to tables that say what is noise."""

from longtail.recipes.comparing.comparing import compare_paths as compare_paths
from longtail.recipes.comparing.writing import write_comparison as write_comparison
