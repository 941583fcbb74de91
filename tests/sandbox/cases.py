"""The programs that the tests run, and how."""

import tomllib
from pathlib import Path
from typing import Any

from cbench_server.evaluators import CodeExecution

HERE = Path(__file__).parent
ATTACKS: dict[str, dict[str, str]] = tomllib.loads((HERE / "attacks.toml").read_text())
LEGITIMATE: dict[str, Any] = tomllib.loads((HERE / "legitimate.toml").read_text())

PROMPT = 'def scale(n):\n    """Scale n by the factor in the specification."""\n'
CHECK = "def check(candidate):\n    assert candidate(2) == 94\n    assert candidate(7) == 329\n"


def scale(test: str = CHECK) -> dict[str, Any]:
    """Return an example that wants a function `scale`."""
    return {"context": PROMPT, "test": test, "entry_point": "scale"}


def score(original: dict[str, Any], response: str, timeout: float = 5.0) -> float:
    """Return `pass_at_1` in the sandbox that evaluators have by default."""
    return CodeExecution(timeout=timeout).score(original, {"response": response})["pass_at_1"]
