"""The whole hostile corpus through every step of the event loop; prints the worst in CPU time.

    python scripts/hostile.py [--part 3/40] [--jobs 2]

Fails when a step holds the loop for more than 50 ms. A part is a fair sample of the whole.
The speed of the machine stands beside it, since what is 50 ms on one is 20 ms on another.
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzzing.corpus import all_pairs  # noqa: E402  the tests' folder is no package of ours
from tests.fuzzing.steps import LONGEST_S, cpu_seconds_afresh, steps  # noqa: E402

Worst = dict[str, tuple[float, str]]
_SHOWN = 10


def drive(part: int, parts: int) -> tuple[int, Worst]:
    """Take one part of the texts through every step."""
    every, texts = dict(steps()), 0
    worst: Worst = {}
    for name, text in all_pairs(part, parts):
        texts += 1
        for step_name, step in every.items():
            found = cpu_seconds_afresh(step, text), name
            worst[step_name] = max(worst.get(step_name, found), found)
    return texts, worst


def passes_per_second() -> float:
    """Return how many millions of passes of an empty loop the machine makes in a second of CPU."""
    passes = 1_000_000
    taken = []
    for _ in range(5):
        started = time.thread_time()
        for _ in range(passes):
            pass
        taken.append(time.thread_time() - started)
    return passes / min(taken) / 1e6


def main() -> int:
    """Drive all, or the part that is asked for, and print the steps that took most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N parts")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    shares = [(part - 1 + parts * job, parts * args.jobs) for job in range(args.jobs)]
    started = time.monotonic()
    if args.jobs == 1:
        done = [drive(*shares[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            done = pool.starmap(drive, shares, chunksize=1)
    texts = sum(count for count, _ in done)
    worst: Worst = {}
    for _, found in done:
        for name, taken in found.items():
            worst[name] = max(worst.get(name, taken), taken)
    minutes = (time.monotonic() - started) / 60
    print(f"{texts:,} texts through {len(worst)} steps in {minutes:.0f} minutes")
    print(
        f"this machine makes {passes_per_second():.0f} million passes of an empty loop per second"
    )
    ranked = sorted(((*taken, name) for name, taken in worst.items()), reverse=True)
    for seconds, text, name in ranked[:_SHOWN]:
        print(f"  {seconds * 1000:5.1f} ms of CPU  {name}: {text}")
    seconds, text, name = ranked[0]
    print(f"worst step: {seconds * 1000:.1f} ms of CPU ({name}, {text})")
    return int(seconds > LONGEST_S)


if __name__ == "__main__":
    sys.exit(main())
