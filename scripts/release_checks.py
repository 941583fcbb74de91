"""What must hold of a package before it leaves: licence, version, changelog, links."""

import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

from version import main as version_main
from version import version

ROOT = Path(__file__).resolve().parent.parent
_LOCAL_LINK = re.compile(r"\]\((?![a-z]+:|#)[^)]*\)")


def check_tree() -> None:
    """Refuse a tree whose packages disagree on their version."""
    if version_main([]):
        raise SystemExit("the versions differ; see above")
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    if changed:
        print(f"not committed, so not in the Go module:\n{changed}", end="", flush=True)


def check_changelog() -> None:
    """Say what the changelog has of this version; a release has a heading for it."""
    text = (ROOT / "CHANGELOG.md").read_text()
    if f"\n## {version()}" not in text:
        print(
            f"CHANGELOG.md has no heading {version()} yet; docs/releasing.md says when it gets one"
        )


def check_archive(archive: Path) -> None:
    """Refuse an archive without a licence, or a Python one whose page has links that die."""
    names, metadata = _contents(archive)
    if not any(name.rpartition("/")[2] == "LICENSE" for name in names):
        raise SystemExit(f"{archive.name} has no LICENSE")
    if dead := _LOCAL_LINK.findall(metadata):
        raise SystemExit(f"{archive.name} has links that lead nowhere on an index: {dead[:3]}")


def _contents(archive: Path) -> tuple[list[str], str]:
    """Return the names in an archive and its Python metadata, empty where it has none."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = wheel.namelist()
            (page,) = [name for name in names if name.endswith(".dist-info/METADATA")]
            return names, wheel.read(page).decode()
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        pages = [name for name in names if name.count("/") == 1 and name.endswith("/PKG-INFO")]
        held = packed.extractfile(pages[0]) if pages else None
        return names, held.read().decode() if held else ""
