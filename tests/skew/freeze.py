"""Freezes the SDKs and the daemon of a commit as an archive, for the tests of version skew.

    python -m tests.skew.freeze COMMIT

The archive is a part of the tree: sources, examples and lock files, without tests and tools, and
without what no test of skew asks for. The vocabularies of tokens, which are large and the same in
every version, are taken from this tree when it is unpacked.
"""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(__file__).parent / "frozen"
VOCABULARIES = "cbench_server/tokens/data"
_TAKEN = ("cbench_server", "clients", "examples/python", "LICENSE")
_LEFT_OUT = (
    VOCABULARIES,
    "cbench_server/conformance",
    "cbench_server/evaluators/ifeval/data",
    "cbench_server/reports/assets",
    "clients/go/tools",
    "clients/node/test",
    "clients/node/tools",
    "clients/python/tests",
    "clients/rust/tests",
)


def freeze(commit: str) -> Path:
    """Write the archive of a commit, and return where it is."""
    git = ["git", "-C", str(ROOT)]
    short = subprocess.check_output([*git, "rev-parse", "--short=7", commit], text=True).strip()
    whole = subprocess.check_output([*git, "archive", "--format=tar", commit, *_TAKEN])
    path = FOLDER / f"{short}.tar.xz"
    with tarfile.open(fileobj=io.BytesIO(whole)) as tree, tarfile.open(path, "w:xz") as kept:
        for member in tree:
            is_test = member.name.endswith("_test.go")
            if member.isfile() and not is_test and not member.name.startswith(_LEFT_OUT):
                kept.addfile(member, tree.extractfile(member))
    return path


if __name__ == "__main__":
    print(freeze(sys.argv[1]))
