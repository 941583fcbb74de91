"""The documentation agrees with the code, and its links lead somewhere."""

import re
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

import cbench_client
import cbench_server
from cbench_server.daemon.settings import Settings
from tests.fixtures import preloaded

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OURS = "https://github.com/cbench/cbench-server/blob/main/"  # as READMEs on an index have to say


def linked(page: Path, link: str) -> Path | None:
    """Return the file of the repository that a link leads to; None for one that leads elsewhere."""
    if link.startswith(OURS):
        return ROOT / link.removeprefix(OURS)
    return None if "://" in link else (page.parent / link).resolve()


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings make, as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_generated_parts_are_what_the_code_says() -> None:
    command = [sys.executable, ROOT / "scripts" / "gen_docs.py", "--check"]
    done = preloaded.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_local_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        name, _, anchor = link.partition("#")
        target = linked(page, name) if name else page
        if target is None:
            continue
        assert target.exists(), f"{page.relative_to(ROOT)} links to {link}, which does not exist"
        if anchor:
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {link}"


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        if page.is_dir():
            waiting += page.glob("*.md")
        elif page.suffix == ".md":
            links = (link.partition("#")[0] for link in LINK.findall(page.read_text()))
            targets = [linked(page, link) for link in links if link]
            waiting += [target for target in targets if target is not None]
    missing = [str(page.relative_to(ROOT)) for page in PAGES if page not in seen]
    assert missing == []


SHOWN = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_test_that_shows_a_promise_exists(page: Path) -> None:
    for file, name in SHOWN.findall(page.read_text()):
        defined = re.findall(r"^(?:async )?def (test_\w+)\(", (ROOT / file).read_text(), re.M)
        assert name in defined, f"{page.name} names {file}::{name}"


# Sections of docs/security.md that promise nothing.
WITHOUT_PROMISES = {
    "What is protected from whom",
    "How to set it up",
    "What is not promised",
    "Reporting a hole",
}


def test_security_promises_only_what_a_named_test_shows() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    _, *sections = re.split(r"^## ", page, flags=re.M)
    promised = 0
    for section in sections:
        title, _, body = section.partition("\n")
        if title in WITHOUT_PROMISES:
            continue
        lines = [line for line in body.splitlines() if line.strip()]
        head = lines.index("| Promise | Shown by |")
        for row in lines[head + 2 :]:
            assert row.startswith("| "), f"{title}: a promise outside of the table: {row}"
            shown = row.split("|")[-2]
            assert re.search(r"`tests/[\w/]+\.py(::test_\w+)?`", shown), f"{title}: {row}"
            promised += 1
    assert promised > 40


@pytest.mark.parametrize("module", [cbench_server, cbench_client], ids=lambda each: each.__name__)
def test_public_names_are_sorted_and_documented(module: ModuleType) -> None:
    names = module.__all__
    section = (ROOT / "docs" / "api.md").read_text().split(f"\n## {module.__name__}\n")[1]
    documented = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.M)
    assert names == sorted(names)
    assert documented == [name for name in names if name != "__version__"]


def test_every_public_name_exists() -> None:
    for module in (cbench_server, cbench_client):
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_the_configuration_file_shown_is_one() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    shown = re.search(r"```toml\n(.*?)```", page, re.S)
    assert shown is not None
    assert set(tomllib.loads(shown[1])) <= {each.name for each in fields(Settings)}


def test_every_package_we_depend_on_has_its_reason() -> None:
    page = (ROOT / "docs" / "decisions" / "0001-what-we-build-on.md").read_text().lower()
    for folder in (ROOT, ROOT / "clients" / "python"):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {}).values()
        for requirement in sum(extras, project["dependencies"]):
            name = re.split(r"[^\w-]", requirement)[0]
            assert name.startswith("cbench-") or re.search(rf"\b{name}\b", page), name


def test_python_shown_compiles() -> None:
    for page in PAGES:
        for source in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
            compile(source, str(page), "exec")
