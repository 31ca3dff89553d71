"""Results as JSON. It imports nothing of torch: the command line lists recipes without it."""

import json
import math
import re
from typing import Any


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """JSON as every reader takes it: a number that is not finite is null.

    >>> print(json_text({"few": float("nan")}), end="")
    {
      "few": null
    }
    """
    text = json.dumps(_finite(value), indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n"
    # Halves of characters, as of file names that are no UTF-8, which no file of UTF-8 takes.
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
