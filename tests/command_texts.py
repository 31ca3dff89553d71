"""Commands as texts name them: in blocks of the docs, and in sentences of pages and messages."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from longtail.cli import app

ROOT = Path(__file__).parents[1]
DOCS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# Of pip, docker and torchrun, which messages name too, and the variables of the page's style.
OTHERS = {"--force-reinstall", "--upgrade", "--shm-size", "--nproc-per-node", "--help"}


def blocks(path: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a document: their language and their text."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S)


def block_commands(path: Path) -> list[tuple[str, ...]]:
    """The words after `longtail` of every command in a block, without comments and `> file`."""
    commands = []
    for language, text in blocks(path):
        for line in text.splitlines() if language in ("", "console", "sh") else ():
            match = re.match(r"(?:\$ )?(?:torchrun .* -m )?longtail (.*)", line)
            if match:
                words = shlex.split(match[1].partition(" > ")[0], comments=True)
                commands.append(tuple(words))
    return commands


def python_blocks(path: Path) -> list[str]:
    """The blocks of a document that are Python and no doctest: they parse, and call something."""
    code = []
    for _, text in blocks(path):
        try:
            nodes = ast.walk(ast.parse(text))
        except SyntaxError:
            continue
        if any(isinstance(node, ast.Call) for node in nodes):
            code.append(text)
    return code


def spans(path: Path) -> list[str]:
    """What stands in the text of a document as code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    return re.findall(r"`([^`]+)`", text)


def texts(path: Path) -> Iterator[str]:
    """Every string of a source file, an f-string whole with {} for what is filled in."""
    tree = ast.parse(path.read_text())
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in inside else node.value


def sentence_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands in a sentence: words go on while they are options, values or placeholders."""
    for match in re.finditer(rf"longtail ({'|'.join(app.commands)})\b", text):
        command, words = app.commands[match[1]], [match[1]]
        if not text[match.end() :].startswith(" "):
            continue
        wants_value = False
        for raw in text[match.end() :].split():
            word = raw.rstrip(".,;:)`")
            stands = re.fullmatch(r"[A-Z][A-Z_]+|\{\}|[\w./-]+\.[a-z]+|\S+=\S+", word)
            if not (word.startswith("-") or wants_value or stands):
                break
            words.append(word)
            option = option_of(command, word)
            wants_value = option is not None and not option.is_flag
            if word != raw:
                break
        if len(words) > 1:
            yield tuple(words)


def option_of(command: click.Command, word: str) -> click.Option | None:
    """The option of a command that is written so."""
    options = (option for option in command.params if isinstance(option, click.Option))
    matching = (option for option in options if word in (*option.opts, *option.secondary_opts))
    return next(matching, None)


def is_whole(words: tuple[str, ...]) -> bool:
    """Whether a command is there to be run: it says on what, and not only an option of it."""
    command, value = app.commands[words[0]], False
    for word in words[1:]:
        option = option_of(command, word)
        if option is None and not value and not word.startswith("-"):
            return True
        value = option is not None and not option.is_flag
    return False
