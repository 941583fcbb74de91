"""Groups of equal failures: what failed in the same way, how often, and where for example."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cbench_server.results import EvalRow

_EXAMPLES_NAMED = 3
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass
class FailureGroup:
    """Rows of one system that failed for one reason, in words that differ in numbers at most."""

    system: str
    dataset: str
    reason: str
    message: str
    """That of the first."""
    count: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def named(self) -> str:
        """The first examples, as text."""
        more = ", ..." if self.count > len(self.examples) else ""
        return ", ".join(self.examples) + more

    @property
    def why(self) -> str:
        """The reason with the message."""
        return f"{self.reason}: {self.message}"


def group_failures(rows: Iterable[EvalRow]) -> list[FailureGroup]:
    """Group the rows that failed, the largest group first."""
    groups: dict[tuple[str, str, str, str], FailureGroup] = {}
    for row in rows:
        failure = row.failure
        if failure is None:
            continue
        example = str(row.example_id)
        message = failure.message.replace(example, "#") if example else failure.message
        words = _NUMBERS.sub("#", message)
        key = (row.system, row.dataset, failure.reason, words)
        group = groups.setdefault(
            key, FailureGroup(row.system, row.dataset, failure.reason, failure.message)
        )
        group.count += 1
        if len(group.examples) < _EXAMPLES_NAMED and example not in group.examples:
            group.examples.append(example)
    return sorted(groups.values(), key=lambda group: -group.count)
