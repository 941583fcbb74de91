"""`make demo-model`: compressors and controls, read by a real model on real questions.

The model is SmolLM2-135M-Instruct on one thread, fetched once. It reads what each system left,
and is asked how likely the right answer is to it; nothing leaves this machine.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from demo import buildable, run_cbench, say
from example_systems import EXTRACTIVE, RETRIEVER, ROOT, ExampleSystem

EXAMPLES = 20
RATIO = 0.4
ANSWER_TOKENS = 24
FIELDS = ("contains", "answer_gain")


START, END = "<!-- generated: demo-model -->\n", "<!-- end -->\n"
PAGE = ROOT / "README.md"


def main(folder: Path, examples: int) -> int:
    """Fetch what is missing, run, compare, and return the exit code."""
    folder.mkdir(exist_ok=True)
    if code := run_cbench(["model", "fetch"]):
        return code
    os.environ["CBENCH_HOME"] = str(folder / "home")
    systems = list(buildable((EXTRACTIVE, RETRIEVER), folder))
    names = " and ".join(system.name for system in systems)
    say(
        f"\n{examples} questions: {names} keep {RATIO:.0%} of the words, beside equally long cuts\n"
    )
    if code := run_cbench(reading(systems, examples)):
        return code
    for field in FIELDS:
        compared = ["compare", "last", "--baseline", "identity", "--score-field", field]
        compared += ["--flips", "0"]
        print(f"\n$ cbench {' '.join(compared)}", flush=True)
        if code := run_cbench(compared):
            return code
    report = ["report", "last", "-o", str(folder / "model-report.html")]
    return run_cbench(report, subprocess.DEVNULL)


def reading(systems: list[ExampleSystem], examples: int) -> list[str]:
    """Return the command of the run."""
    command = ["run", "--dataset", "mini-qa", "-n", str(examples)]
    for system in systems:
        command += ["--launch", system.launch, "--name", system.name]
        command += ["--option", f"{system.name}.ratio={RATIO}"]
    command += ["--builtin", "identity", "--controls", "matched", "--no-anchors"]
    command += ["--reader", "local", "--likelihood", "local", "--score-field", FIELDS[0]]
    return [*command, "--max-tokens", str(ANSWER_TOKENS)]


def write_page(arguments: list[str]) -> int:
    """Run the demonstration, show it, and put what it prints into the README."""
    command = [sys.executable, __file__, *arguments]
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=wide, check=False)
    print(done.stdout, end="")
    if done.returncode == 0:
        before, _, rest = PAGE.read_text().partition(START)
        _, _, after = rest.partition(END)
        block = f"```text\n$ make demo-model\n{excerpt(done.stdout)}\n```\n"
        PAGE.write_text(before + START + block + END + after)
    return done.returncode


def excerpt(printed: str) -> str:
    """Return the first table, what the likelihood means, and the verdicts by it."""
    table, _, rest = printed.strip().partition("\n\n")
    meaning = [line for line in rest.splitlines() if line.startswith("Likelihood kept:")]
    verdicts = rest[rest.rindex("\n$ cbench compare") :]
    return "\n".join([table, "", *meaning, "[...]", verdicts.strip()])


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".demo"))
    parser.add_argument("-n", dest="examples", type=int, default=EXAMPLES)
    parser.add_argument("--fetch-only", action="store_true", help="get what it needs, and end")
    parser.add_argument("--page", action="store_true", help="also write it into README.md")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    try:
        os.chdir(ROOT)
        if given.fetch_only:
            given.folder.mkdir(exist_ok=True)
            is_whole = len(list(buildable((EXTRACTIVE, RETRIEVER), given.folder))) == 2
            sys.exit(run_cbench(["model", "fetch"]) or not is_whole)
        if given.page:
            sys.exit(write_page(["--folder", str(given.folder), "-n", str(given.examples)]))
        sys.exit(main(given.folder, given.examples))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
