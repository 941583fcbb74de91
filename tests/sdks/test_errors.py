"""Errors of the SDKs: the same cause has the same name and reason in all four.

What raises them is tested with each SDK; here the table of docs/errors.md is held against their
sources.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import cbench_client
from cbench_client import ClientError
from tests.fixtures.sdks import CLIENTS, ROOT

PAGE = ROOT / "docs" / "errors.md"


def source(*parts: str) -> str:
    return Path(CLIENTS, *parts).read_text()


def table() -> list[tuple[str, list[str]]]:
    """Return reasons and names, as the page has them."""
    first = PAGE.read_text().split("\n\n")[2]
    rows = [[cell.strip(" `*") for cell in line.split("|")[1:-1]] for line in first.splitlines()]
    return [(reason, names) for _, reason, *names in rows[2:]]


def in_python() -> dict[str, str]:
    found = (getattr(cbench_client, name) for name in cbench_client.__all__)
    errors = [each for each in found if isinstance(each, type) and issubclass(each, ClientError)]
    return {each.__name__: vars(each).get("reason", "its own") for each in errors}


def in_node() -> dict[str, str]:
    classes = re.findall(
        r"^export class (\w+) extends ClientError \{(.*?)^\}",
        source("node", "src", "errors.ts"),
        re.M | re.S,
    )
    reasons = {name: re.search(r'super\(message, "(\w+)"\)', body) for name, body in classes}
    return {name: told[1] if told else "its own" for name, told in reasons.items()}


def in_go() -> dict[str, str]:
    text = source("go", "errors.go")
    body = text[text.index("func Reason(") :]
    types = dict(re.findall(r"^\t\t(\w+) +\*(\w+)$", body, re.M))
    told = re.findall(r"errors\.As\(err, &(\w+)\):\n\t\treturn (.+)$", body, re.M)
    return {types[name]: text.strip('"') if text[0] == '"' else "its own" for name, text in told}


def in_rust() -> dict[str, str]:
    text = source("rust", "src", "error.rs")
    body = text[text.index("pub fn reason(") : text.index("fn name(")]
    told = re.findall(r"(Error::\w+)\b.* => (.+),$", body, re.M)
    errors = {name: text.strip('"') if text[0] == '"' else "its own" for name, text in told}
    # Not an `Error`, because it is an answer.
    return errors | {"Failure": "its own"}


@pytest.mark.parametrize(
    ("column", "found"),
    list(enumerate([in_python, in_node, in_go, in_rust])),
    ids=["python", "node", "go", "rust"],
)
def test_every_error_is_in_the_table_with_its_reason(
    column: int, found: Callable[[], dict[str, str]]
) -> None:
    wanted = {
        names[column]: reason for reason, names in table() if names[column] != "the compiler's"
    }
    errors = found()
    errors.pop("ClientError", None)
    assert errors == wanted


def test_a_cause_has_one_name() -> None:
    for _, names in table():
        bare = {re.sub(r"^Error::|Error$|^Remote", "", name) for name in names}
        assert len(bare - {"the compiler's"}) == 1, names
