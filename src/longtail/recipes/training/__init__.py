"""Recipes of training runs: typed, checked before torch is imported, and what they build."""
