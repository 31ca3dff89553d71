"""From inputs to one result value: numbers, no prose."""
