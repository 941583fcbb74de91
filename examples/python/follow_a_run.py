"""A client in Python: start a run, follow its rows, and survive a lost connection.

Start a daemon with `cbench-server`, then: python examples/python/follow_a_run.py 127.0.0.1:50051
"""

import sys

from cbench_client import BenchClient, row_to_dict

SPEC = {
    "systems": [{"builtin": "truncate-tail", "options": {"ratio": 0.3}}],
    "datasets": [{"name": "mini-qa", "max_examples": 10}],
}

if __name__ == "__main__":
    with BenchClient(*sys.argv[1:]) as client:
        for event in client.evaluate(SPEC):
            if event.HasField("row"):
                row = row_to_dict(event.row)
                print(row["example_id"], row["scores"])
            elif event.HasField("finished"):
                run = event.finished
                print(f"run {run.run_id}: {run.progress.completed_rows} rows")
