"""A page for the result of each flow."""
