"""The run file that `cbench config init` writes: what most runs need, and the rest as comments."""

_HEAD = """\
# A run file. Check it with `cbench config check`, run it with `{command} --config {file}`.
# Flags stand over what is written here. Every key: docs/run-file.md, or `cbench config schema`.
kind = "{kind}"
"""
_PROCESS = """
[[systems]]
builtin = "truncate-head"
options = { ratio = 0.5 }

# [[systems]]
# name = "mine"
# launch = "python my_system.py"     # or exec = "./shorten.sh", http = "http://localhost:8000/",
#                                    # target = "localhost:50061", proxy = "http://localhost:8080"
# options = { ratio = 0.5 }

[[datasets]]
name = "long-notes"
max_examples = 20

# [[datasets]]
# file = "my-examples.jsonl"
# map = { context = "passage", answer = "gold.text[0]" }

[run]
controls = "matched"
seed = 0

[limits]
timeout = "60s"
# budget_usd = 2.0

# [reader]                           # A model that answers for systems that do not.
# url = "http://localhost:8080"
# model = "my-model"
# credential = "my-credential"       # A name in the daemon's configuration, never the key itself.
# price = { input_usd = 0.15, output_usd = 0.6 }

# [judge]
# url = "http://localhost:8080"
# model = "my-judge"
# pack = "correctness"

# [sweep]
# option = "ratio"
# values = [0.1, 0.3, 0.5]

# [gate]                             # The exit code is 1 where one of these does not hold.
# system = "mine"
# policies = ["score at least 0.5", "failures at most 0"]
"""
_MEMORY = """
[[systems]]
builtin = "bm25"

# [[systems]]
# name = "mine"
# launch = "python my_memory.py"

[[datasets]]
name = "mini-memory"

[memory]
budget = 4000
# question_types = ["temporal", "multi_hop"]

[limits]
timeout = "10m"

# [reader]
# url = "http://localhost:8080"
# model = "my-model"

# [judge]
# url = "http://localhost:8080"
# model = "my-judge"
# pack = "memory-qa"
"""


def starting_file(kind: str, file: str) -> str:
    """Return a run file that works as it is."""
    command = "cbench run" if kind == "process" else "cbench memory run"
    head = _HEAD.format(command=command, file=file, kind=kind)
    return head + (_PROCESS if kind == "process" else _MEMORY)
