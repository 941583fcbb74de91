"""From answers to programs."""

from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.sandbox.assembly import assemble, shared_setup

PROMPT = 'from typing import List\n\ndef f(n):\n    """Say n."""\n'


@pytest.mark.parametrize(
    "response",
    [
        "    return n",
        "return n",
        "\n    return n\n",
        "def f(n):\n    return n",
        "```python\ndef f(n):\n    return n\n```",
        "```py\ndef f(n):\n    return n",
        "```\n    return n\n```",
        "Text.\n```python\nimport os\n```\nMore.\n```python\ndef f(n: List):\n    return n\n```",
        "Text:\n\ndef f(n):\n    return n\n\nMore text, it's fine.",
        "First:\n```python\nK = 1\ndef h(n):\n    return n * K\n```\nThen:\n"
        "```python\ndef f(n):\n    return h(n)\n```\nUse:\n```python\nprint(f(g))\n```",
        "```python\n>>> f(1)\n```\n```python\ndef f(n):\n    return n\n```",
    ],
)
def test_a_response_becomes_a_program_that_returns_its_argument(response: str) -> None:
    program = assemble(PROMPT, response, ["f"])
    assert program is not None
    names: dict[str, object] = {}
    exec(program, names)
    assert names["f"](5) == 5  # type: ignore[operator] # it is a function


@pytest.mark.parametrize("response", ["I do not know.", "return n *", "\0", "(" * 5000])
def test_what_is_no_python_is_no_program(response: str) -> None:
    assert assemble("", response, ["f"]) is None


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_is_a_program_or_none(prompt: str, response: str) -> None:
    program = assemble(prompt, response, ["f"])
    assert program is None or isinstance(program, CodeType)


def test_of_setup_code_only_imports_and_classes_are_shared() -> None:
    setup = "import math\nwant = 94\ndef oracle():\n    return 94\nclass C:\n    x = 1\n"
    assert shared_setup(setup) == "import math\nclass C:\n    x = 1"
    assert shared_setup("not python") == ""
