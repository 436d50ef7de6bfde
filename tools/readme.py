"""README.md for the package index, which knows no files beside it: links become addresses.

python tools/readme.py      # rewrites README.md; for the build of a release, not to be committed
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def absolute(text: str, repository: str, tag: str) -> str:
    """The text with links to files of the repository at this tag; pictures as they are there."""
    raw = repository.replace("github.com", "raw.githubusercontent.com")

    def linked(found: re.Match[str]) -> str:
        mark, shown, path = found.groups()
        if re.match(r"[a-z]+:|#", path):
            return found[0]
        base = f"{raw}/{tag}" if mark else f"{repository}/blob/{tag}"
        return f"{mark}[{shown}]({base}/{path})"

    return re.sub(r"(!?)\[([^]\[]*)\]\(([^)\s]+)\)", linked, text)


def main() -> None:
    """Rewrite README.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))
    if version is None:
        sys.exit("meson.build has no version.")
    readme = ROOT / "README.md"
    made = absolute(readme.read_text("utf-8"), project["urls"]["Repository"], f"v{version[1]}")
    readme.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
