"""The suite of faults: every test that shows one, with a seed that is printed and can be given.

`make faults SEED=123` puts kills, damage and junk where the run that printed 123 had them.
"""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "faults" / "README.md"
_MINUTES = 40
# So many lives are played where `make test` plays six.
_LIVES = "30"
# For one test, in seconds: what is in a hurry is no fault.
_PATIENCE = "600"


def main() -> int:
    """Run all, in at most forty minutes; what follows on the command line goes to pytest."""
    seed = os.environ.get("SEED") or str(random.randrange(1_000_000))
    if not (seed.isascii() and seed.isdecimal()):
        print(f"SEED={seed} is no seed; give the number that an earlier run printed, or none.")
        return 2
    print(f"make faults SEED={seed}", flush=True)
    elsewhere = sorted(set(re.findall(r"`(tests/(?!faults/)[\w/]+\.py::\w+)", TABLE.read_text())))
    environment = {**os.environ, "CBENCH_FAULTS_SEED": seed, "CBENCH_LIFE_EXAMPLES": _LIVES}
    command = [sys.executable, "-m", "pytest", "-m", "", "-rs", "--costs", "-n", "2"]
    command += ["--dist", "loadgroup", "--no-loadscope-reorder", f"--hypothesis-seed={seed}"]
    command += ["--timeout", _PATIENCE]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "tests/faults", *elsewhere, *sys.argv[1:]],
        cwd=ROOT,
        env=environment,
        check=False,
    )
    minutes = (time.monotonic() - started) / 60
    print(f"{minutes:.0f} minutes; again: make faults SEED={seed}")
    if minutes > _MINUTES:
        print(f"that is more than the {_MINUTES} minutes that the suite may take")
    return done.returncode or int(minutes > _MINUTES)


if __name__ == "__main__":
    sys.exit(main())
