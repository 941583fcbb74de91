"""Generator of cbench_server/storage/*_statements.py: storage/statements.py as plain text.

With --check, only tell whether the committed modules are what it gives now.
"""

import re
import sys
from pathlib import Path
from typing import Any

from cbench_server.storage import statements
from cbench_server.storage.schema import HEAD_REVISION, events, examples

FOLDER = Path(statements.__file__).parent
# The driver gives up the interpreter lock once per statement, and beside a busy
# event loop that takes longer than the insert: many rows go in one statement.
BATCHES = (64, 8, 1)
HEADER = '''"""Every statement for {database}, and how a new store is made.

Generated from statements.py by scripts/gen_statements.py: do not edit.
"""

'''


def module_of(name: str) -> str:
    """Return the source of the module of one database."""
    database = statements.DATABASES[name]
    constants: dict[str, Any] = {
        "HEAD_REVISION": HEAD_REVISION,
        "EVENT_COLUMNS": len(events.c),
        "EXAMPLE_COLUMNS": len(examples.c),
        **statements.named(database),
        **statements.positional(database),
        **statements.copied(database),
    }
    written = {key: _literal(value) for key, value in constants.items()}
    if name == "sqlite":
        written |= {key: _batches(text) for key, text in statements.batched(database).items()}
    lines = [f"{key} = {value}\n" for key, value in written.items()]
    return HEADER.format(database=name) + "".join(lines)


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return _block("{", [f"{key!r}: {_quoted(each)}" for key, each in value.items()], "}")
    if isinstance(value, tuple):
        return _block("(", [_quoted(each) for each in value], ")")
    return repr(value)


def _quoted(text: str) -> str:
    if "\\" in text:
        raise ValueError(f"write a case for this statement: {text}")
    if "'" in text:
        return '"{}"'.format(text.replace('"', '\\"'))
    return f"'{text}'" if '"' in text else f'"{text}"'


def _block(opening: str, items: list[str], closing: str) -> str:
    return "\n".join([opening, *(f"    {item}," for item in items), closing])


def _batches(text: str) -> str:
    """Write a table from how many rows are inserted to the statement, given that for one."""
    match = re.fullmatch(r"(.* VALUES )(\([^)]*\))(.*)", text)
    assert match, text
    head, row, tail = map(_quoted, match.groups())
    return f'{{count: {head} + ", ".join([{row}] * count) + {tail} for count in {BATCHES}}}'


def main() -> int:
    """Write the modules, or say which of them are stale."""
    sources = {FOLDER / f"{name}_statements.py": module_of(name) for name in statements.DATABASES}
    if "--check" not in sys.argv[1:]:
        for path, source in sources.items():
            path.write_text(source)
        return 0
    stale = [
        path.name
        for path, source in sources.items()
        if not path.exists() or path.read_text() != source
    ]
    if stale:
        print(f"{', '.join(stale)}: not what statements.py gives. Run: make statements")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
