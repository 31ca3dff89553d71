"""reproduce: every table and figure of five papers, by name, from runs that are finished."""
