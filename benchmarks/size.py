"""How large the library is: files, and lines of code, docstrings, comments and nothing, by folder.

python benchmarks/size.py
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src/longtail"
DATA = (".toml", ".j2", ".css", ".js")  # named recipes, and what a page is made of


def main() -> None:
    by_folder: dict[str, Counter[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        folder = path.relative_to(SOURCE).parts[0] if path.parent != SOURCE else "."
        by_folder.setdefault(folder, Counter()).update(lines_of(path.read_text()), files=1)
    total = sum(by_folder.values(), Counter())
    print("# How large the library is\n")
    print("| folder | files | lines | code | docstrings | comments | blank |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for folder, counted in [*by_folder.items(), ("**all**", total)]:
        kinds = ("files", "lines", "code", "docstrings", "comments", "blank")
        print(f"| {folder} | {' | '.join(f'{counted[kind]:,}' for kind in kinds)} |")
    others = [path for path in SOURCE.rglob("*.*") if path.suffix in DATA]
    lines = sum(len(path.read_text().splitlines()) for path in others)
    kinds = ", ".join(DATA)
    print(
        f"\nBeside these {len(others)} files of recipes and templates ({kinds}): {lines:,} lines."
    )
    print("Made by `python benchmarks/size.py`.")


def lines_of(text: str) -> Counter[str]:
    """How many lines of each kind a file has."""
    lines = text.splitlines()
    documented = {line for node in ast.walk(ast.parse(text)) for line in docstring_of(node)}
    commented = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#")
    }
    kinds = Counter(
        "docstrings"
        if number in documented
        else "comments"
        if number in commented
        else "code"
        if line.strip()
        else "blank"
        for number, line in enumerate(lines, start=1)
    )
    kinds["lines"] = len(lines)
    return kinds


def docstring_of(node: ast.AST) -> range:
    """The lines of its docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return range(0)
    if ast.get_docstring(node) is None:
        return range(0)
    first = node.body[0]
    return range(first.lineno, (first.end_lineno or first.lineno) + 1)


if __name__ == "__main__":
    main()
