"""Bill of materials: every pinned dependency, with its hashes, as CycloneDX JSON.

    python scripts/sbom.py [FILE]

Made from the lock files, so that the same commit gives the same bill.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", re.M)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_GO = re.compile(r"^(\S+) (v\S+?) h1:\S+$", re.M)


def bill() -> dict[str, Any]:
    """Return the whole bill."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = str(project.get("version") or _version())
    found = {each["bom-ref"]: each for each in components()}
    parts = [found[name] for name in sorted(found)]
    # A name of what it lists: it changes when, and only when, the list does.
    told = json.dumps([version, parts], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, told)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/{project['name']}@{version}",
                "name": project["name"],
                "version": version,
            }
        },
        "components": parts,
    }


def components() -> Iterator[dict[str, Any]]:
    """Yield what is pinned: for the daemon, and for the SDKs."""
    yield from _python(ROOT / "constraints" / "base.txt")
    for path in sorted(ROOT.glob("clients/*/package-lock.json")):
        for place, package in json.loads(path.read_text())["packages"].items():
            if place and "version" in package and not package.get("dev"):
                name = package.get("name") or place.rpartition("node_modules/")[2]
                yield _component("npm", name, package["version"])
    for package in tomllib.loads((ROOT / "clients/rust/Cargo.lock").read_text())["package"]:
        if "source" in package:
            digest = [package["checksum"]] if "checksum" in package else []
            yield _component("cargo", package["name"], package["version"], digest)
    for name, version in _GO.findall((ROOT / "clients/go/go.sum").read_text()):
        if not version.endswith("/go.mod"):
            yield _component("golang", name, version)


def _python(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text()
    starts = [*_PINNED.finditer(text)]
    for place, found in enumerate(starts):
        end = starts[place + 1].start() if place + 1 < len(starts) else len(text)
        hashes = _HASH.findall(text, found.end(), end)
        yield _component("pypi", found[1].lower(), found[2], hashes)


def _component(kind: str, name: str, version: str, hashes: list[str] | None = None) -> Any:
    address = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
    }
    if hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": each} for each in sorted(hashes)]
    return found


def _version() -> str:
    text = (ROOT / "cbench_server" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"', text, re.M)
    return found[1] if found else "0"


def main() -> None:
    """Write the bill to the file named, else to standard output."""
    text = json.dumps(bill(), indent=2) + "\n"
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
