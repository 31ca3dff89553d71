"""The edges of many, medium and few: how many training samples make a class one of these.

A recipe names them too, and is checked before anything heavy is imported: so nothing here does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

_FORM = "many=100,few=20,inclusive"
_FLAGS = ("inclusive", "few_inclusive")


@dataclass(frozen=True)
class GroupEdges:
    """Where classes of many and of few training samples begin; the others are medium.

    Papers disagree. The default is that of LADE and of most code, many > 100 and few < 20; LA, ELM
    and NCM count a class of 100 as many, which is "many=100,few=20,inclusive".

    >>> GroupEdges.of("many=100,few=20,inclusive")
    GroupEdges(many=100, few=20, many_inclusive=True, few_inclusive=False)
    >>> str(GroupEdges(many=50))
    'many=50,few=20'
    """

    many: int = 100
    few: int = 20
    many_inclusive: bool = False  # whether a class of just so many has many
    few_inclusive: bool = False  # whether a class of just so few has few

    def __post_init__(self) -> None:
        for name, edge in (("many", self.many), ("few", self.few)):
            if isinstance(edge, bool) or not isinstance(edge, int) or edge < 0:
                raise ValueError(f"{name} must be a number of samples, 0 or more, got {edge!r}")
        if self.few > self.many or (
            self.few == self.many and self.many_inclusive and self.few_inclusive
        ):
            raise ValueError(
                f"groups must not overlap: few ({self.few}) must lie below many ({self.many}), "
                "or meet it with one edge inclusive at the most"
            )

    def __str__(self) -> str:
        both = zip(_FLAGS, (self.many_inclusive, self.few_inclusive), strict=True)
        parts = [f"many={self.many}", f"few={self.few}", *(word for word, holds in both if holds)]
        return ",".join(parts)

    @classmethod
    def of(cls, groups: GroupsLike | None) -> GroupEdges:
        """The edges that a text says, such as "many=100,few=20,inclusive"; None for the default.

        `inclusive` counts a class at the edge of many as many, `few_inclusive` one at that of few
        as few. What is not said is as in the default.
        """
        if groups is None or isinstance(groups, GroupEdges):
            return groups or cls()
        values: dict[str, int] = {}
        for part in groups.split(","):
            name, equals, number = (word.strip() for word in part.partition("="))
            is_edge = name in ("many", "few") and number.isdecimal()
            if name in values or not (is_edge or (name in _FLAGS and not equals)):
                raise ValueError(
                    f"groups are written as {_FORM}, each part once; got {part.strip()!r} "
                    f"in {groups!r}"
                )
            values[name] = int(number) if is_edge else 1
        flags = (name in values for name in _FLAGS)
        return cls(values.get("many", cls.many), values.get("few", cls.few), *flags)


GroupsLike: TypeAlias = GroupEdges | str
DEFAULT_EDGES = GroupEdges()
