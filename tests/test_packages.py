"""What every package of this repository has: the licence, the version, where it comes from."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cbench_server.lazy_imports import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
SDKS = ("python", "go", "rust", "node")
REPOSITORY = "https://github.com/cbench/cbench-server"


@pytest.mark.parametrize("sdk", SDKS)
def test_every_package_comes_with_the_licence(sdk: str) -> None:
    assert (ROOT / "clients" / sdk / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_version_is_the_same_everywhere() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "version.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_one_command_sets_the_version_of_every_package(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import version
    finally:
        sys.path.pop(0)
    for place in (*version.PLACES, "pyproject.toml", "scripts/version.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes((ROOT / place).read_bytes())
    script = [sys.executable, tmp_path / "scripts" / "version.py"]
    assert subprocess.run([*script, "7.8.9"]).returncode == 0
    for place in version.PLACES:
        before = (ROOT / place).read_text()
        assert (tmp_path / place).read_text() == before.replace(version.version(), "7.8.9", 1) or (
            place.endswith("package-lock.json")
        )
    assert '"cbench-client~=7.8.0"' in (tmp_path / "pyproject.toml").read_text()
    (tmp_path / "clients/go/doc.go").write_bytes((ROOT / "clients/go/doc.go").read_bytes())
    checked = subprocess.run(script, capture_output=True, text=True)
    assert checked.returncode == 1
    assert "clients/go/doc.go says" in checked.stdout


def test_the_node_package_is_a_library() -> None:
    package = json.loads((ROOT / "clients/node/package.json").read_text())
    assert all(wanted.startswith("^") for wanted in package["dependencies"].values())
    assert package["exports"]["./package.json"] == "./package.json"
    assert package["repository"]["url"] == f"git+{REPOSITORY}.git"
    assert package["author"]
    assert package["keywords"]
    locked = json.loads((ROOT / "clients/node/package-lock.json").read_text())
    assert locked["packages"][""]["dependencies"] == package["dependencies"]


def test_the_crate_says_where_it_comes_from() -> None:
    crate = tomllib.loads((ROOT / "clients/rust/Cargo.toml").read_text())["package"]
    assert crate["repository"] == REPOSITORY
    assert crate["license"] == "MIT"


def test_the_go_module_is_where_its_tags_are() -> None:
    module = (ROOT / "clients/go/go.mod").read_text().splitlines()[0]
    assert module == f"module {REPOSITORY.removeprefix('https://')}/clients/go"
    assert "clients/go/v" in (ROOT / "docs" / "releasing.md").read_text()


@pytest.mark.parametrize("extra", sorted(set(EXTRAS.values())))
def test_every_extra_is_on_the_page_about_installing(extra: str) -> None:
    assert f"| `{extra}` |" in (ROOT / "docs" / "install.md").read_text()
