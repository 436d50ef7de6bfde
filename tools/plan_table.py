"""The table of docs/how-apcg-chooses.md, from the rules of the plan.

python tools/plan_table.py     # write it
"""

from __future__ import annotations

from pathlib import Path

from apcg.methods.plan.rules import RULES, Rule

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-apcg-chooses.md"
BEGIN, END = "<!-- by tools/plan_table.py -->\n", "<!-- end -->\n"


def row(rule: Rule) -> str:
    """The problems of a rule, and its method."""
    link = " ([many classes](many-classes.md))" if "softmax" in rule.of else ""
    then = f": {rule.then}" if rule.then else ""
    return f'| {rule.of}{link} | "{rule.method}"{then} |'


def table(many: bool) -> str:
    """The rules for one output, or for K, in their order."""
    head = f"| {'K outputs' if many else 'problem'} | first method |\n|---|---|\n"
    return head + "\n".join(row(rule) for rule in RULES if rule.many in (many, None)) + "\n"


def written(page: str) -> str:
    """The page with the tables of the rules in it."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{table(False)}\n{table(True)}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
