"""The commands as functions: inputs in, one frozen result with every number out, no prose."""
