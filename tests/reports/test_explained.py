"""Every code, column and key that a run may show is explained on the pages about them."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_server import results
from cbench_server.metrics.model_usage import MARKS
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.reports.columns import BUILTIN_KEYS, HEADLINE

ROOT = Path(__file__).parents[2]
CONCEPTS = (ROOT / "docs/concepts.md").read_text()
STATISTICS = (ROOT / "docs/statistics.md").read_text()
_CODE = re.compile(r"[A-Z][A-Z_]{3,}")


def _calls(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is given as the code of a note."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func
        is_note = isinstance(called, ast.Name) and called.id == "RunNote"
        # `found.note(CODE, ...)`, of Findings.
        is_finding = (
            isinstance(called, ast.Attribute)
            and called.attr == "note"
            and isinstance(called.value, ast.Name)
            and called.value.id == "found"
        )
        if is_note or is_finding:
            yield node.args[0]


def _codes() -> set[str]:
    found: set[str] = set(MARKS)
    for path in sorted((ROOT / "cbench_server").rglob("*.py")):
        source = path.read_text()
        if "RunNote(" not in source and "found.note(" not in source:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for given in _calls(ast.parse(source)):
            if isinstance(given, ast.Constant):
                found.add(str(given.value))
            elif isinstance(given, ast.Name) and given.id.isupper():
                found.add(getattr(importlib.import_module(module), given.id))
            else:
                # A code that came from somewhere else, where it was found above.
                assert ast.unparse(given) in ("note.code", "code", "mark"), (path, given.lineno)
    return found


def test_the_codes_are_found() -> None:
    codes = _codes()
    assert {"UNCHANGED", "MATCHED_CONTROLS", "JUDGE_RANGE", "PROMPT_CUT", "SALVAGED"} <= codes
    assert all(_CODE.fullmatch(code) for code in codes)


def test_every_code_of_a_note_is_explained() -> None:
    assert sorted(code for code in _codes() if f"`{code}`" not in CONCEPTS) == []


def test_every_mark_of_a_row_is_explained() -> None:
    marks = {
        value
        for name, value in vars(results).items()
        if isinstance(value, str) and name == value and _CODE.fullmatch(value)
    }
    assert "RETRIED_ALONE" in marks
    pages = CONCEPTS + STATISTICS
    assert sorted(mark for mark in marks if f"`{mark}`" not in pages) == []


def test_no_code_is_explained_that_does_not_exist() -> None:
    start = CONCEPTS.index("| Code | Says | Stands on |")
    rows = CONCEPTS[start : CONCEPTS.index("\n\n", start)].splitlines()[2:]
    told = {code for row in rows for code in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    assert sorted(told - _codes()) == []


@pytest.mark.parametrize("title", [*(column.title for column in HEADLINE), "Kind", "Scored"])
def test_every_column_is_explained(title: str) -> None:
    start = STATISTICS.index("## Every column of a table")
    cells = re.findall(r"^\| ([^|]+) \|", STATISTICS[start:], re.MULTILINE)
    assert title in {part.strip() for cell in cells for part in cell.split(",")}


def _titles(path: str) -> set[str]:
    """Return what is written as a part of a table's header."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / "cbench_server" / path).read_text())):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {each.id for each in targets if isinstance(each, ast.Name)}
            if names & {"header", "_COLUMNS", "_TITLES", "p_title", "tokens"}:
                found |= {
                    each.value
                    for each in ast.walk(node.value)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    return {each for each in found if each[:1].isupper()}


@pytest.mark.parametrize(
    "path",
    [
        "reports/anchors.py",
        "reports/evidence.py",
        "reports/groups.py",
        "reports/scores.py",
        "reports/sweeps.py",
        "comparison/tables.py",
        "cli/commands/show.py",
        "cli/commands/runs.py",
    ],
)
def test_every_column_of_other_tables_is_explained(path: str) -> None:
    start = STATISTICS.index("## Columns of other tables")
    section = STATISTICS[start : STATISTICS.index("## Every other key")]
    titles = _titles(path)
    assert titles
    assert sorted(title for title in titles - {"System"} if title not in section) == []


def test_every_line_without_a_code_is_explained() -> None:
    start = CONCEPTS.index("| Line | Is there | Stands on |")
    told = CONCEPTS[start : CONCEPTS.index("\n\n", start)]
    said = set()
    for node in ast.walk(ast.parse((ROOT / "cbench_server/reports/table.py").read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.endswith("notes"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and part.value != ast.get_docstring(node):
                    said |= {part.value} if isinstance(part.value, str) else set()
    # Sentences, not keys of a record.
    lines = {each.strip(' .;:"') for each in said if " " in each.strip()}
    assert "Rows on which a system failed count as 0" in lines
    assert sorted(line for line in lines if line not in told) == []


def test_every_key_is_explained() -> None:
    pages = CONCEPTS + STATISTICS
    keys = dict.fromkeys(base_key(key) for key in BUILTIN_KEYS)
    assert [key for key in keys if f"`{key}`" not in pages] == []
