"""python -m apcg.patch [-m module | script.py] [arguments]"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

from . import __doc__ as _about
from . import patch_sklearn

USAGE = "usage: python -m apcg.patch [-m module | script.py] [arguments]"


def main(arguments: list[str]) -> None:
    """Run a script, or a module after -m, with scikit-learn patched."""
    module = arguments[:1] == ["-m"]
    rest = arguments[1:] if module else arguments
    if not rest or rest[0] in ("-h", "--help"):
        print(_about if rest else USAGE)
        raise SystemExit(0 if rest else 2)
    if not (_is_there(rest[0]) if module else Path(rest[0]).exists()):
        what = "module" if module else "file"
        print(f"python -m apcg.patch: there is no {what} {rest[0]!r}.\n{USAGE}", file=sys.stderr)
        raise SystemExit(2)
    patch_sklearn()
    sys.argv = rest
    if module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(rest[0]).resolve().parent)
        runpy.run_path(rest[0], run_name="__main__")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of a package that it is in
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
