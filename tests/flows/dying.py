"""A run that dies while its files are put in place, for a process of its own."""

import os
import shutil
from pathlib import Path

from longtail.flows.generation import generation

OLD = {"report.html": "old", "old.json": "old", "shared.json": "old"}
NEW = {"report.html": "new", "new.json": "new", "shared.json": "new"}


def write(folder, text, names, kind="fix"):
    with generation(folder, kind, ("report.html", "stale.json")) as aside:
        for name in names:
            (aside / name).write_text(text)


def die_at(folder, step):
    """For a process of its own: it dies before its n-th change of a name."""
    calls = []

    def counted(real):
        def change(*arguments, **options):
            calls.append(real)
            if len(calls) == step:
                os._exit(9)
            return real(*arguments, **options)

        return change

    for name in ("rename", "replace", "unlink"):
        setattr(Path, name, counted(getattr(Path, name)))
    shutil.rmtree = counted(shutil.rmtree)
    write(Path(folder), "new", NEW)
