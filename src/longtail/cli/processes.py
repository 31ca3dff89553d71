"""Which of several processes this is; torchrun says it in the environment."""

import os


def is_first() -> bool:
    """Whether this is the process that prints: the only one, or rank 0."""
    return os.environ.get("RANK", "0") == "0"


def rank() -> str | None:
    """The rank in words for an error of one process among several."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return None
    return f"rank {os.environ.get('RANK', '0')}"
