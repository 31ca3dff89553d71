"""Whole flows, each readable on one page."""
