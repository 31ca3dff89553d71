"""Heads: from features to logits."""

from longtail.heads.estimated_offset import EstimatedOffset as EstimatedOffset
