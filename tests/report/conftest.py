"""Reading an SVG back: elements by class, and where marks lie."""

import re
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


class Drawn:
    """A parsed figure. Parsing alone already asserts that it is well-formed XML."""

    def __init__(self, text: str) -> None:
        self.root = ElementTree.fromstring(text)
        self.width, self.height = map(float, self.root.get("viewBox").split()[2:])
        self.title = self.root.findtext(f"{SVG}title")
        self.description = self.root.findtext(f"{SVG}desc")
        self.texts = ["".join(text.itertext()) for text in self.root.iter(f"{SVG}text")]

    def of_class(self, name: str) -> list[ElementTree.Element]:
        return [item for item in self.root.iter() if item.get("class") == name]

    def marks(self) -> list[tuple[float, float]]:
        return self.starts("mark")

    def starts(self, name: str) -> list[tuple[float, float]]:
        """Where the paths of a class begin."""
        starts = [re.match(r"M(\S+) ([-\d.]+)", item.get("d")) for item in self.of_class(name)]
        return [(float(start[1]), float(start[2])) for start in starts]

    def tooltips(self) -> list[str]:
        return [item.findtext(f"{SVG}title") for item in self.of_class("mark")]

    def ticks(self, anchor: str) -> dict[str, tuple[float, float]]:
        """Tick labels and where they stand: "end" for the y axis, "middle" for the x axis."""
        found = (t for t in self.root.iter(f"{SVG}text") if t.get("text-anchor") == anchor)
        return {t.text: (float(t.get("x")), float(t.get("y"))) for t in found}

    def inside(self, x: float, y: float) -> bool:
        return 0 <= x <= self.width and 0 <= y <= self.height


@pytest.fixture
def read() -> type[Drawn]:
    return Drawn
