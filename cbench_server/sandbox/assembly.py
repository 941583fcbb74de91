"""From a model's answer to a program: find the code, join it to the prompt, indent it."""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PYTHON = ("python", "py", "python3", "")
_FIRST_LINE = re.compile(r"^(?:async def |def |class |import |from |@)", re.MULTILINE)
_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=", re.MULTILINE
)
_MAX_TRIALS = 200


def assemble(prompt: str, response: str, wanted: Sequence[str]) -> CodeType | None:
    """Compile the first reading of a response that can be; None if none can.

    `prompt` is the beginning of the program, or empty; `wanted` are the names
    that it should define.
    """
    for program in _readings(prompt, response, wanted):
        if (code := _compiled(program)) is not None:
            return code
    return None


def _readings(prompt: str, response: str, wanted: Sequence[str]) -> Iterator[str]:
    for code in _codes(response, wanted):
        yield from _joined(prompt, code, wanted)
    yield from (
        joined
        for code in _without_prose(response)
        for joined in _joined(prompt, code, wanted)
        if _defines(code, wanted)
    )


def _codes(response: str, wanted: Sequence[str]) -> Iterator[str]:
    """Yield the code blocks, the one that defines what is wanted first, then all as it stands."""
    blocks = [
        (match["language"].lower(), match["code"])
        for match in _FENCE.finditer(response.replace("\r\n", "\n"))
    ]
    python = [code for language, code in blocks if language in _PYTHON]
    python = python or [code for _, code in blocks]
    defining = [code for code in python if _defines(code, wanted)]
    helpers = [code for code in python if code not in defining and _only_defines(code)]
    for code in defining:
        # What one block needs may be defined in another; examples of use are no part of it.
        if helpers:
            yield "\n".join([*helpers, code])
        yield code
    yield from sorted(python, key=len, reverse=True)
    yield response.replace("\r\n", "\n")


def _joined(prompt: str, code: str, wanted: Sequence[str]) -> Iterator[str]:
    dedented = textwrap.dedent(code)
    if not prompt.strip():
        yield code
        yield dedented
        return
    if _defines(dedented, wanted):
        # A whole function: what the prompt imports and defines besides is still needed.
        whole = prompt if _compiled(prompt) else f"{prompt}\n    pass\n"
        yield f"{whole}\n{code}"
        yield f"{whole}\n{dedented}"
        # Alone, since "from __future__" may come first only.
        yield dedented
    body = code.strip("\n")
    yield prompt + code
    yield f"{prompt}\n{code}"
    # The first line often lost its indentation to the prompt's last.
    yield f"{prompt}    {body.lstrip()}\n"
    yield f"{prompt}\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    yield f"{prompt}\n{textwrap.indent(body, '    ')}\n"
    yield code
    yield dedented


def _without_prose(response: str) -> Iterator[str]:
    """Yield what begins where code may begin and ends where it may end, longest first."""
    found = _FIRST_LINE.search(response)
    if not found:
        return
    lines = response[found.start() :].split("\n")
    for end in range(len(lines), max(0, len(lines) - _MAX_TRIALS), -1):
        yield "\n".join(lines[:end])


def _defines(code: str, wanted: Sequence[str]) -> bool:
    # One pattern for all names: compiling one per name takes longer than all the rest.
    return any((match[1] or match[2]) in wanted for match in _DEFINITION.finditer(code))


def _only_defines(code: str) -> bool:
    """Whether a block has no effect but to define names."""
    harmless = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(
        isinstance(each, harmless)
        or (isinstance(each, ast.Assign) and not any(map(_is_call, ast.walk(each))))
        for each in statements
    )


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _compiled(program: str) -> CodeType | None:
    try:
        # Compiling, not parsing: "return" outside a function is a fault found late.
        return compile(program, "solution.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def shared_setup(setup: str) -> str:
    """Return the imports and classes of some setup code: what a candidate must know of it.

    The rest stays with the tests, since it may hold expected values.
    """
    if not setup.strip():
        return ""
    try:
        tree = ast.parse(setup)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    shared = (ast.Import, ast.ImportFrom, ast.ClassDef)
    kept = [each for each in tree.body if isinstance(each, shared)]
    return "\n".join(ast.unparse(each) for each in kept)
