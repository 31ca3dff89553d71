"""The parts of a report on scores: each looks at the same judged samples and says one thing."""
