"""What a terminal without Unicode shows: the sign of a number stays, what has no like is a `?`."""

import codecs

PLAINER = "longtail.plainer"
_LIKE = {"−": "-", "\u00a0": " ", "•": "*", "τ": "tau", "±": "+-", "…": "...", "→": "->", "†": "^"}


def plainer(error: UnicodeError) -> tuple[str, int]:
    """What to write in place of the characters that cannot be."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_LIKE.get(character, "?") for character in wrong), error.end


codecs.register_error(PLAINER, plainer)
