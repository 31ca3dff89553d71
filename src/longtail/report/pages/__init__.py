"""One page for each kind of result."""
