"""`make demo-model`: compressors and controls, read by a real model on real questions.

The model is SmolLM2-135M-Instruct on one thread, fetched once. It reads what each system left,
and is asked how likely the right answer is to it; nothing leaves this machine.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from demo import BIN, run_cbench, say
from example_systems import ROOT

EXAMPLES = 24
RATIO = 0.4
ANSWER_TOKENS = 16
CONTROLS = ("truncate-tail", "random-drop")
EMBEDDING = "constraints/embedding.txt"


def main(folder: Path, examples: int) -> int:
    """Fetch what is missing, run, compare, and return the exit code."""
    folder.mkdir(exist_ok=True)
    if code := run_cbench(["model", "fetch"]):
        return code
    os.environ["CBENCH_HOME"] = str(folder / "home")
    say(f"\n{examples} questions, each compressor at {RATIO:.0%} of the words, beside controls\n")
    code = run_cbench(reading(with_embedding(folder), examples))
    if code:
        return code
    for field in ("contains", "answer_gain"):
        print(f"\ncbench compare last --baseline identity --score-field {field}\n", flush=True)
        compared = ["compare", "last", "--baseline", "identity", "--score-field", field]
        if code := run_cbench([*compared, "--flips", "0"]):
            return code
    report = ["report", "last", "-o", str(folder / "model-report.html")]
    return run_cbench(report, subprocess.DEVNULL)


def with_embedding(folder: Path) -> str:
    """Install the package with the embeddings beside the environment; return where."""
    place = folder / "embedding"
    stamp = place / "pinned.txt"
    pinned = (ROOT / EMBEDDING).read_text()
    if not stamp.exists() or stamp.read_text() != pinned:
        say(f"getting the embeddings (wordllama, 19 MB) into {place}")
        install = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        install += ["--disable-pip-version-check", "--no-deps", "--upgrade", "--target", str(place)]
        install += ["--require-hashes", "-r", EMBEDDING]
        subprocess.run(install, check=True)
        stamp.write_text(pinned)
    return str(place.resolve())


def reading(embedding: str, examples: int) -> list[str]:
    """Return the command of the run."""
    python = shlex.quote(sys.executable)
    selector = f"env PYTHONPATH={shlex.quote(embedding)} {python}"
    command = ["run", "--dataset", "mini-qa", "-n", str(examples), "--builtin", "identity"]
    command += ["--launch", f"{python} examples/python/extractive.py", "--name", "identity"]
    command += ["--launch", f"{selector} examples/python/embedding_selector.py"]
    command += ["--name", "extractive", "--name", "embedding-selector"]
    for control in CONTROLS:
        command += ["--builtin", control]
    for name in ("extractive", "embedding-selector", *CONTROLS):
        command += ["--option", f"{name}.ratio={RATIO}"]
    command += ["--score-field", "contains"]
    command += ["--reader", "local", "--likelihood", "local", "--no-anchors"]
    return [*command, "--max-tokens", str(ANSWER_TOKENS), "--controls", "none"]


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".demo"))
    parser.add_argument("-n", dest="examples", type=int, default=EXAMPLES)
    parser.add_argument("--fetch-only", action="store_true", help="get what it needs, and end")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    try:
        os.chdir(ROOT)
        if given.fetch_only:
            given.folder.mkdir(exist_ok=True)
            with_embedding(given.folder)
            sys.exit(run_cbench(["model", "fetch"]))
        sys.exit(main(given.folder, given.examples))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
