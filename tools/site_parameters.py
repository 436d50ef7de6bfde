"""For the reference: a line of several parameters, `a, b : int`, becomes one line for each.

griffe, which reads the docstrings, gives all parameters of a line the type and the default of the
first one. mkdocs.yml names this file as an extension of griffe.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

#: A section of parameters, up to the heading of the next.
SECTION = re.compile(r"(?<=^Parameters\n----------\n).*?(?=^\w[\w ]*\n---|\Z)", re.S | re.M)
#: Names at the left edge, maybe a type, and what is said of them.
ITEM = re.compile(r"^(\w[\w, ]*,(?:\n|\s)[\w, \n]*?\w)( : .*)?\n((?:    .*\n?)*)", re.M)


class OneByOne(griffe.Extension):
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **rest: Any) -> None:
        """Called by griffe for everything that it loads."""
        del rest
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)


def one_by_one(text: str) -> str:
    """The same docstring with a line for each parameter."""
    return SECTION.sub(lambda section: ITEM.sub(_each, section[0]), text)


def _each(item: re.Match[str]) -> str:
    names = re.split(r",\s*", item[1])
    said = f"{item[2] or ''}\n{item[3]}"
    return "".join(f"{name}{said}" + "\n" * (not said.endswith("\n")) for name in names)
