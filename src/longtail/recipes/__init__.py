"""Data only: named recipes and named experiments."""
