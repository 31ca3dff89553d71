"""Choosing τ: exactly by accuracy, by a proper score, or by calibration error (LA §6.2)."""
