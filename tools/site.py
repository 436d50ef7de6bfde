"""What `mkdocs build` does besides: the page of the commands, and the gallery with its pictures.

mkdocs calls the functions `on_...` below (`hooks` in mkdocs.yml). A gallery page is made of a file
of examples/gallery: its docstring, its code, what it prints and the picture that it saves. They are
run by the build, each in a process and a folder of its own; what they gave is kept in
build/gallery, and is used again while the file is the same.
"""

from __future__ import annotations

import ast
import hashlib
import html
import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples" / "gallery"
KEPT = ROOT / "build" / "gallery"
COMMANDS = "<!-- the commands -->"
OURS = re.compile(r"^::: (apcg\.linear_model)\.(\w+)$", re.MULTILINE)
EXAMPLES = "<!-- the gallery -->"
#: A paragraph of a docstring that lists names, each on a line with two spaces or more after it.
LIST = re.compile(r'<p>([\w"]+ {2,}\S.*?)</p>', re.DOTALL)
#: The dash before what is said of a parameter, where nothing is said.
DANGLING = re.compile(r"–\s*(<div class=\"doc-md-description\">\s*</div>)")
TABLE, PATH = re.compile(r"<table>.*?</table>", re.DOTALL), re.compile(r">[^<]*/[^<]*<")


def on_files(files: Any, config: Any) -> Any:
    """Add a page and a picture for each example."""
    from mkdocs.structure.files import File

    for example in examples():
        found = run(example)
        name = example.stem.replace("_", "-")
        picture = next(iter(found.glob("*.png")), None)
        text = page(example, (found / "printed.txt").read_text(), picture and f"{name}.png")
        files.append(File.generated(config, f"gallery/{name}.md", content=text))
        if picture is not None:
            content = picture.read_bytes()
            files.append(File.generated(config, f"gallery/{name}.png", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put in what is made from the code."""
    del page, config, files
    if COMMANDS in markdown:
        from apcg.cli import apcg

        markdown = markdown.replace(COMMANDS, "\n".join(command_lines(apcg, "apcg")))
    markdown = OURS.sub(lambda found: signed(found[1], found[2]), markdown)
    return markdown.replace(EXAMPLES, cards())


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Make lists of those in docstrings; long names in tables may break after a slash."""
    del page, config, files
    html = DANGLING.sub(r"\1", LIST.sub(lambda found: listed(found[1]), html))
    return TABLE.sub(lambda table: PATH.sub(breakable, table[0]), html)


def breakable(text: re.Match[str]) -> str:
    """Paths between two tags, with a place for a new line after each slash."""
    return re.sub(r"(\w/)(?=\w)", r"\1<wbr>", text[0])


def listed(text: str) -> str:
    """Names and what they are, a line each; lines that begin with spaces go on."""
    found = [re.fullmatch(r"(\w+)  +(\S.*)", x) for x in re.sub(r"\n +", " ", text).split("\n")]
    pairs = [(m[1], m[2]) for m in found if m is not None]
    if len(pairs) < len(found) or "  " in pairs[0][1]:
        return f"<pre><code>{re.sub('</?code>', '', text)}</code></pre>"
    return "".join(["<ul>", *(f"<li><code>{a}</code>: {b}</li>" for a, b in pairs), "</ul>"])


def signed(module: str, name: str) -> str:
    """A class whose signature is scikit-learn's, which no reader of our source can see."""
    import importlib

    found = getattr(importlib.import_module(module), name)
    signature = f"{name}{inspect.signature(found)}"
    hidden = "show_root_heading: false, show_root_toc_entry: false, members: false"
    heading = f"## {module}.{name} {{ #{module}.{name} }}"
    wrapped = textwrap.fill(signature, 80, subsequent_indent=" " * (len(name) + 1))
    body = f"::: {module}.{name}\n    options: {{ {hidden} }}"
    return f"{heading}\n\n```python\n{wrapped}\n```\n\n{body}"


# ---- the gallery --------------------------------------------------------------------------------


def examples() -> list[Path]:
    """The files of the gallery, in the order of the navigation."""
    return sorted(GALLERY.glob("*.py"))


def run(example: Path) -> Path:
    """The folder with what an example printed and drew; run only if the file is new."""
    key = hashlib.sha256(example.read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{example.stem}-{key}"
    if (kept / "printed.txt").exists():
        return kept
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    # not PYTHONWARNINGS: meson, which may build the kernels first, would get it too
    command = [sys.executable, "-W", "error", example]
    env = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=kept, capture_output=True, text=True, env=env)
    if done.returncode:
        shutil.rmtree(kept)
        raise RuntimeError(f"{example} failed:\n{done.stdout}\n{done.stderr}")
    (kept / "printed.txt").write_text(done.stdout)
    return kept


def parts(example: Path) -> tuple[str, str, str]:
    """(title, text, code) of an example: the docstring, and what comes after it."""
    source = example.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or "").partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    return title.rstrip("."), text.strip(), code


def page(example: Path, printed: str, picture: str | None) -> str:
    """An example as a page."""
    title, text, code = parts(example)
    lines = [f"# {title}", "", text, ""]
    if picture:
        lines += [f"![{title}]({picture})", ""]
    lines += ["```python", code, "```", ""]
    if printed.strip():
        lines += ["It prints", "", "```text", printed.rstrip(), "```", ""]
    where = example.relative_to(ROOT)
    return "\n".join(
        [*lines, f"The file is `{where}`; the picture is made when this site is built."]
    )


def cards() -> str:
    """A card for each example."""
    made = ['<div class="grid cards" markdown>', ""]
    for example in examples():
        title, text, _ = parts(example)
        name = example.stem.replace("_", "-")
        first = text.split("\n\n")[0].replace("\n", " ")
        made += [f"-   **[{title}]({name}.md)**", "", f"    {first}", ""]
    return "\n".join([*made, "</div>"])


# ---- the commands -------------------------------------------------------------------------------


def command_lines(command: click.Command, name: str, level: int = 2) -> list[str]:
    """A command and those below it: what it does, how it is called, its options."""
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    found = [f"{'#' * level} {name}", "", *help_lines(command.help or ""), ""]
    found += ["```text", f"{name} {usage}", "```", ""]
    shown = [p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden]
    if shown:
        found += ["| option | what it does | default |", "|---|---|---|"]
        found += [option_row(option, context) for option in shown] + [""]
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found += command_lines(command.commands[below], f"{name} {below}", level)
    return found


def help_lines(text: str) -> list[str]:
    """The help of a command: a paragraph that begins with a backspace is kept as it is."""
    found = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            found += ["```text", *paragraph.split("\n")[1:], "```", ""]
        else:
            found += [html.escape(paragraph.replace("\n", " "), quote=False), ""]
    return found


def option_row(option: click.Option, context: click.Context) -> str:
    """An option as a row of a table; what is not given has no default to show."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    said = option.help or ""
    kind = option.make_metavar(context).replace("INTEGER RANGE", "WHOLE NUMBER")
    metavar = "" if option.is_flag else f" {kind.replace('FLOAT RANGE', 'NUMBER')}"
    if isinstance(option.type, click.Choice):
        metavar = " NAME"
        if not all(choice in said for choice in option.type.choices):
            said = f"{said} One of {', '.join(option.type.choices)}.".strip()
    default = option.get_default(context, call=False)
    if isinstance(option.show_default, str):
        shown = escaped(option.show_default)
    elif option.is_flag and not option.secondary_opts:
        shown = ""
    elif isinstance(default, bool):
        shown = f"`{(option.opts if default else option.secondary_opts)[0]}`"
    else:
        shown = "" if default is None or "UNSET" in str(default) else f"`{default}`"
    return f"| {names}{escaped(metavar)} | {escaped(said)} | {shown} |"


def escaped(text: str) -> str:
    """Text in a cell of a table."""
    return html.escape(text.replace("\n", " "), quote=False).replace("|", "\\|")
