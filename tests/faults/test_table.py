"""The table of faults names every fault, and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("README.md")
PROMISED = [f"R{number}" for number in range(1, 28)]
SHARED = [f"D{number}" for number in range(1, 12)]
MENDED = [f"V{number}" for number in range(1, 17)] + [f"S{number}" for number in range(1, 9)]
PAGES = (TABLE, ROOT / "docs" / "operations.md")


def shown_by(text: str) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", text)


def test_every_fault_is_shown_by_a_test() -> None:
    lines = [line.split(" | ", 2) for line in TABLE.read_text().splitlines() if line[:2] == "| "]
    faults = {name.strip("| "): tests for name, _, tests in lines[1:]}
    named = [name for name in faults if re.fullmatch(r"[DRVS]\d+", name)]
    assert named == PROMISED + SHARED + MENDED
    assert [name for name, tests in faults.items() if not shown_by(tests)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page: Path) -> None:
    for file, name in shown_by(page.read_text()):
        source = (ROOT / file).read_text()
        assert not name or re.search(rf"^(?:async )?def {name}\(", source, re.M), f"{file}::{name}"


def test_every_paragraph_of_promises_names_a_test() -> None:
    """But for those that lead to what follows them, and tables that show no promises."""
    page = (ROOT / "docs" / "operations.md").read_text()
    page = re.sub(r"<!-- generated.*?<!-- end -->|```.*?```", "", page, flags=re.S)
    parts = [part.strip() for part in re.split(r"\n\s*\n|\n(?=- \*\*)", page)]
    texts = [part for part in parts if part and not part.startswith(("#", "|"))]
    rows = [row for part in parts if "Shown by |" in part for row in part.splitlines()[2:]]
    assert [each for each in texts[1:] + rows if not (shown_by(each) or each.endswith(":"))] == []


@pytest.mark.parametrize("folder", ["faults", "cluster"])
def test_every_test_that_takes_long_is_in_the_table(folder: str) -> None:
    """`make faults` runs this folder, and of others what the table names."""
    named = {name for _, name in shown_by(TABLE.read_text())}
    for path in (ROOT / "tests" / folder).glob("test_*.py"):
        marked = re.findall(
            r"^@pytest\.mark\.faults\n(?:@.*\n|    .*\n|\)\n)*?(?:async )?def (test_\w+)",
            path.read_text(),
            re.M,
        )
        assert set(marked) <= named, path.name
