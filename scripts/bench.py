"""All measurements of benchmarks/, one after another."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = (
    "tokens.py",
    "scoring.py",
    "code_execution.py",
    "orchestration.py",
    "in_process.py",
    "rescoring.py",
    "startup.py",
    "curves.py",
    "sdks.py",
    "memory.py",
    "dataset_streaming.py",
    "durability.py",
)

if __name__ == "__main__":
    for name in PROGRAMS:
        print(f"# python benchmarks/{name}", flush=True)
        done = subprocess.run([sys.executable, f"benchmarks/{name}"], cwd=ROOT, check=False)
        if done.returncode:
            sys.exit(f"benchmarks/{name} failed")
