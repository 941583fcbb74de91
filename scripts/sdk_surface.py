"""Generator of `API.md` of each SDK: every public name, as the language's own tool shows it.

Python: `inspect`. Go: `go doc -all`. Node: the TypeScript compiler's declarations. Rust: the pages
of rustdoc, which unlike its JSON are there without nightly. Each wants its SDK built; see
`built` in tests/fixtures/sdks.py, and `make sdk-docs`.
"""

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cbench_client

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "clients"
RUST_BUILD = {"RUSTC_WORKSPACE_WRAPPER": "clippy-driver", "CARGO_INCREMENTAL": "0"}
"""As the tests compile it, so that nothing is compiled twice."""


def python_surface() -> str:
    """Show what `cbench_client` exports."""
    return "".join(_python_name(name) for name in cbench_client.__all__)


def _python_name(name: str) -> str:
    value: Any = getattr(cbench_client, name)
    lines = [f"## {name}\n"]
    if inspect.isclass(value) and not hasattr(value, "__required_keys__"):
        bases = [base.__name__ for base in value.__bases__ if base is not object]
        lines.append(_fenced(f"class {name}{_signature(value)}" + _of(bases)))
        lines.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
        for member, each in _members(value).items():
            if not member.startswith("_") and inspect.isfunction(each):
                told = inspect.cleandoc(each.__doc__ or "").partition("\n\n")[0]
                lines.append(f"- `{member}{_signature(each)}`: {' '.join(told.split())}")
        lines.append("")
    elif inspect.isclass(value):
        fields = (f"    {key}: {_annotation(kind)}" for key, kind in value.__annotations__.items())
        lines.append(_fenced("\n".join([f"class {name}(TypedDict):", *fields])))
        lines.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    else:
        lines.append(_fenced(f"def {name}{_signature(value)}"))
        lines.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    return "\n".join(lines) + "\n"


def _members(value: type) -> dict[str, Any]:
    """Return the members of a class, with those of classes behind it that have no page."""
    found: dict[str, Any] = {}
    for each in value.__mro__:
        is_own = each.__module__.startswith("cbench_client.")
        if each is value or (is_own and each.__name__ not in cbench_client.__all__):
            found |= {name: member for name, member in vars(each).items() if name not in found}
    return found


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except ValueError:
        return "()"
    return _bare(text.replace("(self, ", "(").replace("(self)", "()"))


def _annotation(kind: Any) -> str:
    return _bare(inspect.formatannotation(kind))


def _bare(text: str) -> str:
    """Leave out where a type lives, and addresses, which change."""
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    text = re.sub(r"-> '(\w+)'", r"-> \1", text)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)
    return text.replace("Processes | Remembers | Scores | Callable[..., Any]", "Servable")


def _of(bases: list[str]) -> str:
    return f"  # a {', '.join(bases)}" if bases else ""


def _fenced(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```\n"


def go_surface() -> str:
    """Show what `go doc` shows."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    return _fenced(_run("go", "doc", "-all", ".", folder="go", env=environment).strip(), "text")


def node_surface() -> str:
    """Show what the TypeScript compiler shows."""
    return _run("node", "scripts/surface.js", folder="node")


def rust_surface() -> str:
    """Show what rustdoc shows of everything but the stubs."""
    with tempfile.TemporaryDirectory() as folder:
        rustdoc(Path(folder))
        pages = sorted(Path(folder, "cbench_client").glob("*.*.html"), key=_rust_name)
        return "\n".join(part for page in pages for part in rust_page(page.read_text()))


def rustdoc(output: Path) -> None:
    """Make the pages without cargo, which would check every dependency again for it."""
    folder = CLIENTS / "rust"
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    package = manifest["package"]
    used = manifest["dependencies"] | manifest["target"]["cfg(unix)"]["dependencies"]
    build = ("cargo", "build", "--locked", "--quiet", "--lib", "--message-format=json")
    printed = _run(*build, folder="rust", env={**os.environ, **RUST_BUILD})
    artifacts = [json.loads(line) for line in printed.splitlines()]
    compiled = {
        each["target"]["name"]: each["filenames"][-1]
        for each in artifacts
        if each["reason"] == "compiler-artifact"
    }
    crate = package["name"].replace("-", "_")
    _run(
        "rustdoc",
        "src/lib.rs",
        f"--edition={package['edition']}",
        f"--crate-name={crate}",
        f"--out-dir={output}",
        f"-Ldependency={folder / 'target' / 'debug' / 'deps'}",
        *(f"--extern={name.replace('-', '_')}={compiled[name.replace('-', '_')]}" for name in used),
        "-Dwarnings",
        folder="rust",
        env={**os.environ, "CARGO_PKG_VERSION": package["version"]},
    )


def _rust_name(page: Path) -> str:
    return page.name.partition(".")[2]


def rust_page(html: str) -> Iterator[str]:
    """Return the declaration and the methods on one page of rustdoc."""
    reader = _Rustdoc()
    # What the compiler implements by itself is the same everywhere.
    reader.feed(html.partition('id="synthetic-implementations"')[0])
    if reader.title:
        yield f"## {reader.title}\n"
        yield _fenced("\n".join(reader.declarations[:1]), "rust")
        if reader.declarations[1:]:
            yield _fenced("\n".join(dict.fromkeys(reader.declarations[1:])), "rust")


class _Rustdoc(HTMLParser):
    """Takes the code out of a page: the declaration, then the headers of what it has."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.declarations: list[str] = []
        self._text = ""
        self._until = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = (dict(attrs).get("class") or "").split()
        if self._until:
            return
        if (tag == "pre" and "item-decl" in classes) or "code-header" in classes or tag == "title":
            self._until, self._text = tag, ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag != self._until:
            return
        self._until = ""
        text = self._text.replace("\xa0", " ").strip()
        if tag == "title":
            self.title = text.partition(" in ")[0]
        else:
            self.declarations.append(text)


def _run(*command: str, folder: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=CLIENTS / folder, env=env, text=True, stdout=subprocess.PIPE, check=True
    )
    return done.stdout


SURFACES: dict[str, tuple[str, Callable[[], str]]] = {
    "python": ("`inspect`", python_surface),
    "go": ("`go doc -all`", go_surface),
    "node": ("the TypeScript compiler", node_surface),
    "rust": ("rustdoc", rust_surface),
}


def page(sdk: str) -> str:
    """Return the page of an SDK, as it should be."""
    tool, surface = SURFACES[sdk]
    title = {"node": "JavaScript and TypeScript"}.get(sdk, sdk.capitalize())
    head = f"# Public names of cbench-client for {title}\n\nMade by {tool}, with `make sdk-docs`.\n"
    return f"{head}\n{surface().strip()}\n"


def main(names: list[str]) -> int:
    """Write the pages of these SDKs, or of all."""
    for name in names or SURFACES:
        (CLIENTS / name / "API.md").write_text(page(name))
        print(f"clients/{name}/API.md written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
