"""Templates of prompts: text with the names of fields in braces, and nothing else.

`{context}` stands for a field of the example, `{{` and `}}` for the braces
themselves. There are no attributes, indexes, conversions or formats, so a
template can neither run nor reach anything. A line that names fields, all of
which are empty for an example, is left out. After a line `[[example]]` follows
the form of one few-shot example, for `{examples}`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from cbench_server.errors import InvalidSpec
from cbench_server.limits import (
    MAX_TEMPLATE_LENGTH,
    MAX_TEMPLATE_PIECES,
    MAX_TIMES_OF_A_FIELD,
)

EXAMPLE_LINE = "[[example]]"
_TOKEN = re.compile(r"\{\{|\}\}|\{[^{}\n]*\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Names that published templates have for our fields.
_ALIASES = {"input": "question"}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


_Line = tuple[str | _Field, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A template that was read; `parse` makes them."""

    lines: tuple[_Line, ...]
    fields: frozenset[str]

    def render(self, values: Mapping[str, str]) -> str:
        """Put values in; a field without one is empty."""
        rendered: list[str] = []
        is_after_gap = True
        has_dropped = False
        for line in self.lines:
            names = [part.name for part in line if isinstance(part, _Field)]
            if names and not any(values.get(name) for name in names):
                has_dropped = True
                continue
            text = "".join(
                part if isinstance(part, str) else values.get(part.name, "") for part in line
            )
            is_gap = not names and not text.strip()
            if not (is_gap and is_after_gap and has_dropped):
                rendered.append(text)
            if not is_gap:
                has_dropped = False
            is_after_gap = is_gap
        if has_dropped:
            while rendered and not rendered[-1].strip():
                rendered.pop()
        return "\n".join(rendered)


@lru_cache(maxsize=16)
def parse(text: str) -> Template:
    """Read a template; raise InvalidSpec with the line that is not one."""
    if len(text) > MAX_TEMPLATE_LENGTH:
        raise InvalidSpec(
            f"the prompt template has {len(text):,} characters, above {MAX_TEMPLATE_LENGTH:,}"
        )
    pieces = sum(map(text.count, "\r\n{}"))
    if pieces > MAX_TEMPLATE_PIECES:
        raise InvalidSpec(
            f"the prompt template has {pieces:,} lines and braces, above {MAX_TEMPLATE_PIECES:,}"
        )
    lines = tuple(_parse_line(line, at) for at, line in enumerate(_plain(text).split("\n"), 1))
    named = Counter(part.name for line in lines for part in line if isinstance(part, _Field))
    for name, times in named.items():
        if times > MAX_TIMES_OF_A_FIELD:
            raise InvalidSpec(
                f"the prompt template names {{{name:.200}}} {times:,} times, above "
                f"{MAX_TIMES_OF_A_FIELD}; a prompt would have as many copies of it"
            )
    return Template(lines, frozenset(named))


def _parse_line(line: str, number: int) -> _Line:
    parts: list[str | _Field] = []
    end = 0
    for found in _TOKEN.finditer(line):
        parts.append(line[end : found.start()])
        end = found.end()
        token = found[0]
        if token in ("{{", "}}"):
            parts.append(token[0])
            continue
        name = token[1:-1].strip() if len(token) > 1 else ""
        if not _NAME.fullmatch(name):
            raise InvalidSpec(
                f'line {number} of the prompt template has "{token}", which is not a field. Write '
                "{name} for a field of the example, and {{ and }} for braces."
            )
        parts.append(_Field(_ALIASES.get(name, name)))
    parts.append(line[end:])
    return tuple(part for part in parts if part != "")


def split_forms(text: str) -> tuple[str, str]:
    """Split a template file into the prompt, and the form of one example or nothing."""
    lines = _plain(text).split("\n")
    at = next((at for at, line in enumerate(lines) if line.strip() == EXAMPLE_LINE), None)
    if at is None:
        return _plain(text), ""
    body, form = "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    if not form.strip():
        raise InvalidSpec(
            f"the prompt template has nothing after {EXAMPLE_LINE}; write the form of one few-shot "
            "example there, or leave that line out."
        )
    return body, form


def digest_of(text: str) -> str:
    """Name a template: line ends, space at its end and aliases of fields make no difference."""
    canonical = "\n".join(
        "".join(f"{{{part.name}}}" if isinstance(part, _Field) else _escaped(part) for part in line)
        for line in parse(text).lines
    )
    return hashlib.sha256(canonical.rstrip().encode()).hexdigest()


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").removeprefix("\ufeff").removesuffix("\n")
