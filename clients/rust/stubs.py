"""Tell whether the stubs in src/gen/ are what `cargo xtask protos` makes of protos/.

Nothing is compiled: that command notes digests of what it read and of what it wrote. `cargo xtask
protos --check` makes the stubs again to tell, for which it compiles its generator first.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "protos" / "cbench" / "v1"
STUBS = HERE / "src" / "gen"


def digest(paths: Iterable[Path]) -> str:
    """FNV-1a, 64 bits, of files one after the other."""
    found = 0xCBF29CE484222325
    for path in paths:
        for byte in path.read_bytes():
            found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


def made_from() -> str:
    """Return what src/gen/made-from.txt has to say."""
    maker = (HERE / "xtask/src/main.rs", HERE / "xtask/Cargo.toml", HERE / "Cargo.lock")
    stubs = (STUBS / "cbench.v1.rs", STUBS / "descriptors.bin")
    return f"from {digest([*sorted(PROTOS.iterdir()), *maker])}\nmade {digest(stubs)}\n"


def main() -> int:
    """Compare."""
    if (STUBS / "made-from.txt").read_text() == made_from():
        return 0
    print("src/gen is not what protos/ gives. Run: cargo xtask protos, in clients/rust")
    return 1


if __name__ == "__main__":
    sys.exit(main())
