"""reproduce: a table or a figure of a paper, from its runs to a verdict on each of its claims."""
