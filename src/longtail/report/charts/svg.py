"""The text of an SVG: elements with everything escaped, and text measured without a font."""

import re
from html import escape
from unicodedata import east_asian_width

FONT = 13.0
_NARROW = frozenset("iljtfrI.,:;|'!()[] -·")
_WIDE = frozenset("mwMW@%—")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


Attributes = dict[str, str | float | None]


class Svg(str):
    """SVG text made by this package: a page takes it as it is and escapes every other text."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(name: str, *children: str, **attributes: str | float | None) -> Svg:
    """One element; children that are no Svg are escaped, attributes that are None left out.

    Args:
        name: The tag.
        children: Elements or plain text.
        attributes: `stroke_width` becomes stroke-width, `class_` becomes class.

    >>> element("text", "a < b", x=1.50, text_anchor="end", fill=None)
    '<text x="1.5" text-anchor="end">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Svg) else _text(child) for child in children)
    return Svg(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def coordinate(value: float) -> str:
    """A length in pixels, to a hundredth.

    >>> coordinate(12.0), coordinate(1 / 3), coordinate(-0.001)
    ('12', '0.33', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a text is in a wide sans-serif font, so that none turns out wider.

    >>> text_width("iiii") < text_width("nnnn") < text_width("WWWW")
    True
    """
    return size * sum(map(_character_width, text))


def shorten(text: str, room: float, size: float = FONT) -> str:
    """The text, cut with an ellipsis where it is wider than the room.

    >>> shorten("logit adjustment", 60)
    'logit a…'
    """
    if text_width(text, size) <= room:
        return text
    kept = text
    while kept and text_width(kept + "…", size) > room:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrap(text: str, room: float, most: int = 3, size: float = FONT) -> list[str]:
    """The text in at most `most` lines, broken at spaces, each no wider than the room.

    >>> wrap("post-hoc logit adjustment", 80)
    ['post-hoc', 'logit', 'adjustment']
    """
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and (text_width(joined, size) <= room or len(lines) == most):
            lines[-1] = joined
        else:
            lines.append(word)
    return [shorten(line, room, size) for line in lines]


def label(
    x: float, y: float, text: str, anchor: str = "start", faint: bool = False, full: str = ""
) -> Svg:
    """A line of text; where it was shortened, the full text is its tooltip.

    >>> label(1, 2, "tau")
    '<text x="1" y="2" fill="currentColor" stroke="none">tau</text>'
    """
    tooltip = [element("title", full)] if full and full != text else []
    return element(
        "text",
        text,
        *tooltip,
        x=x,
        y=y,
        text_anchor=None if anchor == "start" else anchor,
        fill="currentColor",
        fill_opacity=0.75 if faint else None,
        stroke="none",
    )


def _text(value: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", value))


def _attribute(value: str | float) -> str:
    return _text(value) if isinstance(value, str) else coordinate(value)


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE or east_asian_width(character) in "WF":
        return 1.0
    return 0.72 if character.isupper() else 0.62
