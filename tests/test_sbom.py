"""The bill of materials lists all that is pinned, with its hashes, and is the same every time."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_pinned_dependency_is_on_the_bill_with_its_hashes(tmp_path: Path) -> None:
    files = [tmp_path / "out" / "one.json", tmp_path / "two.json"]
    for file in files:
        subprocess.run([sys.executable, ROOT / "scripts" / "sbom.py", file], check=True)
    one, two = (file.read_text() for file in files)
    assert one == two
    bill = json.loads(one)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    listed = {each["purl"]: each for each in bill["components"]}
    pinned = re.findall(
        r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "constraints/base.txt").read_text(), re.M
    )
    assert pinned
    for name, version in pinned:
        assert listed[f"pkg:pypi/{name.lower()}@{version}"]["hashes"], name
    for kind in ("npm", "cargo", "golang"):
        assert any(purl.startswith(f"pkg:{kind}/") for purl in listed), kind


def test_every_pin_has_a_hash() -> None:
    """What is installed is what was looked at."""
    for path in (ROOT / "constraints").glob("*.txt"):
        for entry in re.split(r"\n(?=[\w.-]+==)", path.read_text())[1:]:
            assert "--hash=sha256:" in entry, f"{path.name}: {entry[:60]}"
