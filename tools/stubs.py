"""The type stubs of the kernels, written from their sources: what mypy and editors know of them.

    python tools/stubs.py                   # a .pyi beside each .pyx; the repository has none
    python tools/stubs.py KERNEL.pyx OUT.pyi  # one of them, for the build

Types of arguments and attributes are those of Cython; a function that returns something says what,
by an annotation. An argument without a type can be anything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1] / "src" / "apcg" / "_kernels"
#: The numbers that an array of this type has; types that stand for several are in types.pxd.
NUMBERS = {
    "float": ["float32"], "double": ["float64"], "value_t": ["float32", "float64"],
    "int": ["intc"], "int32_t": ["int32"], "int64_t": ["int64"], "index_t": ["int32", "int64"],
    "Py_ssize_t": ["intp"], "unsigned char": ["uint8"], "uint32_t": ["uint32"],
    "uint64_t": ["uint64"], "position_t": ["uint16", "int32"],
}  # fmt: skip
SCALARS = {"float": "float", "double": "float", "bint": "bool", "str": "str"}
SCALARS |= dict.fromkeys(("int", "long", "long long", "Py_ssize_t", "int64_t"), "int")
HEAD = """\
from typing import Any
from typing_extensions import Buffer
import numpy as np
from numpy.typing import NDArray
"""


def plain(path: Path) -> str:
    """A source without its docstrings and comments; "" if there is none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return re.sub(r"#.*", "", re.sub(r'"""[\s\S]*?"""', "pass", text))


def whole(name: str, *, default: bool = False) -> str:
    """The stub's type for a Cython type."""
    name = name.removeprefix("const ").strip()
    if "[" in name:
        kinds = NUMBERS[name[: name.index("[")]]
        return " | ".join([f"NDArray[np.{kind}]" for kind in kinds] + ["None"] * default)
    return SCALARS.get(name, name)


def argument(text: str) -> str:
    """An argument as the stub has it."""
    declared, _, value = text.partition("=")
    kind, _, name = declared.strip().rpartition(" ")
    if name == "self" or not name.isidentifier():  # and the * before keywords
        return name
    made = f"{name}: {whole(kind, default=value == 'None') if kind else 'Any'}"
    return f"{made} = ..." if value else made


def split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    return [p.strip() for p in re.split(r",(?![^(\[]*[)\]])", " ".join(text.split())) if p.strip()]


def functions(text: str, indent: str) -> Iterator[str]:
    """The functions of a module or class."""
    ends = rf"(?=^{indent}\S|\Z)" if not indent else r"(?=^ {0,4}\S|\Z)"
    heads = rf"^{indent}def (\w+)\((.*?)\)(?: -> ([^:]+))?:\n(.*?){ends}"
    for name, given, returns, body in re.findall(heads, text, re.DOTALL | re.MULTILINE):
        if re.search(r"^\s+return \S", body, re.MULTILINE) and not returns:
            raise ValueError(f"{name} returns something: say what, with ->")
        returns = returns.replace("np.ndarray", "NDArray[np.float64]") or "None"
        yield f"{indent}def {name}({', '.join(map(argument, split(given)))}) -> {returns}: ..."


def attributes(text: str) -> Iterator[str]:
    """What can be read of an object, and set if it is public. Arrays become memory views."""
    for how, kind, names in re.findall(
        r"^    cdef (public|readonly) ((?:const |long |unsigned )*\w+(?:\[.*?\])?) (.*)$",
        text,
        re.MULTILINE,
    ):
        known = "Buffer" if "[" in kind else whole(kind)
        for name in split(names):
            if how == "public":
                yield f"    {name}: {known}"
            else:
                yield f"    @property\n    def {name}(self) -> {known}: ..."


def classes(text: str) -> dict[str, str]:
    """The bodies of the classes of a source."""
    found = r"^cdef class (\w+):\n(.*?)(?=^\S|\Z)"
    return dict(re.findall(found, text, re.DOTALL | re.MULTILINE))


def stub(source: Path) -> str:
    """The stub of a kernel."""
    text, header = plain(source), plain(source.with_suffix(".pxd"))
    declared = classes(header)
    lines = []
    for names, value in re.findall(r"^([A-Z][A-Z, _]*) = (.)", text, re.MULTILINE):
        lines += [f"{n}: {'dict[str, int]' if value == '{' else 'int'}" for n in split(names)]
    for name, body in classes(text).items():
        lines.append(f"class {name}:")
        lines += attributes(declared.get(name, "") + body)
        lines += functions(body, "    ")
    lines += functions(text, "")
    made = "\n".join(lines) + "\n"
    imported = re.findall(r"^from (\S+) cimport (\([^)]*\)|.*)$", text + header, re.MULTILINE)
    needed = {
        f"from {module} import {name}\n"
        for module, names in imported
        for name in re.findall(r"\w+", names)
        if re.search(rf": {name}\b|-> {name}:", made)
    }
    return HEAD + "".join(sorted(needed)) + made


def write(source: Path, out: Path) -> None:
    """Write a stub, if it is not what is there."""
    made = stub(source)
    if not out.exists() or out.read_text(encoding="utf-8") != made:
        out.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        for kernel in sorted(KERNELS.rglob("*.pyx")):
            write(kernel, kernel.with_suffix(".pyi"))
