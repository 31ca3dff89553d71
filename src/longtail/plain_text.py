"""Text of strangers, such as names of classes and files, that commands no terminal.

An escape sequence in a name could colour, delete or forge what stands around it, whether a terminal
gets it now or from a file later; so can characters that turn the direction of writing. Whatever is
printed or written as text shows them as their numbers.
"""

import re

# Control characters but for tabs and ends of lines, marks of direction and of ends of lines, and
# halves of characters, which are what file names that are no UTF-8 come as.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain_text(text: str) -> str:
    r"""The text with each character that commands as its number.

    >>> print(plain_text("a\x1b[31mcat"))
    a\x1b[31mcat
    """

    def written(character: re.Match[str]) -> str:
        number = ord(character[0])
        return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"

    return _COMMANDS.sub(written, text)


def plain_json(text: str) -> str:
    """JSON in which such characters are escaped, as JSON does with most of them by itself."""
    return _COMMANDS.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
