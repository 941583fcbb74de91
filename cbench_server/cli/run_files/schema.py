"""Tables and keys of a run file: what is read, checked, written and published comes from here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "text",
    "path",
    "flag",
    "count",
    "natural",
    "whole",
    "number",
    "numbers",
    "dollars",
    "seconds",
    "share",
    "texts",
    "choice",
    "pairs",
    "options",
    "owned",
    "price",
    "prices",
]


@dataclass(frozen=True)
class Key:
    """One key: what its value is, and which flag says the same."""

    name: str
    kind: Kind
    about: str
    dest: str = ""
    """Where the command line keeps it; empty for what no single flag says."""
    choices: tuple[str, ...] = ()
    only: Literal["", "process", "memory"] = ""
    """The kind of run that has it; empty means both."""


@dataclass(frozen=True)
class Table:
    """A table, or a list of tables; the first one, without a name, is the top of the file."""

    name: str
    about: str
    keys: tuple[Key, ...]
    is_list: bool = False
    one_of: tuple[str, ...] = ()
    """Of these keys, each entry has exactly one."""

    def key(self, name: str) -> Key | None:
        """Return a key by its name."""
        return next((key for key in self.keys if key.name == name), None)


WAYS = {
    "target": "system",
    "launch": "launch",
    "exec": "exec",
    "http": "http",
    "builtin": "builtin",
    "attached": "attached",
    "proxy": "proxy",
    "predictions": "predictions",
    "upload": "predictions",
}
"""How a system is found, and the flag that says the same."""

_UNSET = "names of `options` that are sent as null, which leaves out what is usually sent"
_PRICE = "US dollars for a million tokens: { input_usd, output_usd, cached_input_usd }"

TOP = Table(
    "",
    "What stands before the first table.",
    (
        Key(
            "kind",
            "choice",
            "`process`, or `memory` for `cbench memory run` (default: that of the command)",
            choices=("process", "memory"),
        ),
        Key("model", "text", "the model of each proxy, reader and judge that names none", "model"),
        Key("options", "options", "settings for every system that takes them"),
        Key("system_options", "owned", "settings by the name of a system, such as one of several"),
    ),
)
SYSTEMS = Table(
    "systems",
    "The systems to compare, at least one.",
    (
        Key("name", "text", "the name to show (default: the one that it gives itself)"),
        Key(
            "target", "text", "where it is: HOST:PORT or unix:/PATH, with /NAME; A,B,C for replicas"
        ),
        Key("launch", "text", "a command that starts it and says where it listens"),
        Key("exec", "text", "a program that reads and prints a JSON object per line"),
        Key("http", "text", "a web server that answers a POST of such an object"),
        Key("builtin", "text", "a built-in or registered one"),
        Key("attached", "text", "one that is attached to the daemon"),
        Key("proxy", "text", "an OpenAI-compatible endpoint", only="process"),
        Key("predictions", "path", "a file of outputs that exist already", only="process"),
        Key("upload", "text", "such a file by the digest under which the daemon has it"),
        Key("served_name", "text", "which of several at the `target`"),
        Key("replicas", "count", "how often a `launch` is started, to share its calls"),
        Key("resources", "text", "what each takes of a node with `--engine ray`: GPU=1,memory=8GB"),
        Key("only", "texts", "which of the systems that a `launch` serves (default: all)"),
        Key("options", "options", "settings sent with every call to it"),
        Key("unset", "texts", _UNSET),
        Key("credential", "text", "the name of its credential in the daemon's configuration"),
        Key("tls", "flag", "whether to connect to the `target` over TLS"),
        Key("ca", "path", "a PEM file with the authorities to trust for the `target`"),
        Key("ca_pem", "text", "the same as text"),
        Key("server_name", "text", "the name that its certificate has"),
        Key("folder", "path", "where a command is run (default: the folder of the run file)"),
        Key("mode", "choice", "how an `exec` is asked", "exec_mode", ("stream", "once")),
        Key("concurrency", "count", "the most requests at once of an `exec` or `http`"),
        Key("batch", "count", "requests in one POST to an `http`", "http_batch"),
        Key("token_env", "text", "the environment variable with the bearer token of an `http`"),
        Key("timeout", "seconds", "how long an `http` or `proxy` may take for one request"),
        Key("model", "text", "the model of a `proxy`"),
        Key("system_prompt", "text", "a system message of a `proxy`"),
        Key("workers", "count", "the most requests at once to a `proxy`"),
        Key("context_window", "count", "how many tokens fit into a `proxy`"),
        Key("price", "price", f"of a `proxy`, {_PRICE}"),
        Key(
            "role",
            "choice",
            "what it is there for: `direct` is the same model without a proxy (default: tested)",
            choices=("control", "anchor", "direct"),
        ),
        Key("swept_option", "text", "the option of which it is one point of a sweep"),
    ),
    is_list=True,
    one_of=tuple(WAYS),
)
DATASETS = Table(
    "datasets",
    "The examples, at least one dataset.",
    (
        Key("name", "text", "a registered one or hf:ORG/NAME; beside `file`, what to call it"),
        Key("file", "path", "a .jsonl, .json, .csv, .tsv or .parquet file (also with .gz)"),
        Key("upload", "text", "a file by the digest under which the daemon has it"),
        Key("config", "text", "which config of it"),
        Key("max_examples", "count", "at most this many (default: all)", "max_examples"),
        Key("shuffle", "flag", "whether to draw them by the seed", "shuffle"),
        Key("where", "pairs", "only those whose fields have these values, as text", "where"),
        Key("split", "text", "a split other than the usual one", "split"),
        Key("revision", "text", "a commit, tag or branch of the hub", "revision"),
        Key("skip_bad_lines", "flag", "whether to leave out broken lines", "skip_bad_lines"),
        Key("map", "pairs", "where the fields are in other columns: FIELD = PATH", "mapping"),
        Key(
            "as_transcript",
            "flag",
            "whether conversations go to systems without a memory",
            "as_transcript",
            only="process",
        ),
    ),
    is_list=True,
)
EVALUATORS = Table(
    "evaluators",
    "Evaluators besides those that the datasets ask for.",
    (
        Key("name", "text", "its name"),
        Key("target", "text", "HOST:PORT where it is served (default: in the daemon)"),
        Key("attached", "text", "the name under which it is attached"),
        Key("label", "text", "what its scores are called besides their names"),
        Key("options", "options", "its settings"),
        Key("unset", "texts", _UNSET),
    ),
    is_list=True,
)
METRICS = Table(
    "metrics",
    "Metrics instead of the usual set.",
    (
        Key("name", "text", "its name"),
        Key("options", "options", "its settings"),
        Key("unset", "texts", _UNSET),
    ),
    is_list=True,
)
SCORING = Table(
    "scoring",
    "How rows are scored.",
    (
        Key(
            "only_evaluators",
            "flag",
            "whether `evaluators` stand in the place of the datasets' own",
            "only_evaluators",
        ),
        Key("score_field", "text", "the score that counts", "score_field"),
        Key("threshold", "number", "the score from which a row passes", "threshold"),
        Key(
            "tokenizer",
            "text",
            "how tokens are counted: cl100k_base, o200k_base or whitespace",
            "tokenizer",
        ),
        Key("text_fields", "texts", "the fields whose tokens are counted (default: all texts)"),
        Key("group_by", "texts", "fields to give scores by", "group_by"),
    ),
)
READER = Table(
    "reader",
    "A model that answers for systems that do not.",
    (
        Key("url", "text", "its OpenAI-compatible endpoint", "reader"),
        Key("model", "text", "its model", "reader_model"),
        Key("credential", "text", "the name of its credential", "reader_credential"),
        Key("options", "options", "further keys of its requests"),
        Key("unset", "texts", _UNSET),
        Key("workers", "count", "the most requests to it at once", "reader_workers"),
        Key("timeout", "seconds", "how long it has for one answer", "reader_timeout"),
        Key("price", "price", _PRICE, "reader_price"),
        Key("context_window", "count", "how many tokens fit into it"),
        Key("system_prompt", "text", "a system message of its own"),
        Key("anchors", "flag", "whether to measure its noise and guesses (default: yes)"),
    ),
)
PROMPT = Table(
    "prompt",
    "What models are told besides an example.",
    (
        Key("plain", "flag", "whether to send nothing but the example's own texts"),
        Key("file", "path", "a template with fields such as {context} and {question}"),
        Key("template", "text", "the same as text"),
        Key("system", "text", "a system message to put first", "system_prompt"),
        Key("few_shot", "count", "how many other examples to show with answers", "few_shot"),
        Key("max_tokens", "count", "the most tokens of an answer", "max_tokens"),
    ),
)
JUDGE = Table(
    "judge",
    "Models that judge responses: one endpoint, or one for each rater.",
    (
        Key("url", "texts", "its OpenAI-compatible endpoint", "judge_url"),
        Key("model", "texts", "its model, one for all or one for each `url`", "judge_model"),
        Key("pack", "texts", "what it is asked: a name, or a file with prompts", "packs"),
        Key("options", "options", "further keys of its requests"),
        Key("unset", "texts", _UNSET),
        Key("repeats", "count", "how many times each response is judged", "judge_repeats"),
        Key("rpm", "number", "at most this many requests per minute", "judge_rpm"),
        Key("credential", "text", "the name of its credential", "judge_credential"),
        Key("price", "prices", f"{_PRICE}, or one for each `url`", "judge_price"),
        Key("max_cost", "number", "the most US dollars that it may cost", "max_cost"),
        Key(
            "unqualified",
            "flag",
            "whether to go on where it fails its controls",
            "judge_unqualified",
        ),
        Key("labels", "path", "a file with verdicts of people on some rows", "labels_file"),
        Key("labels_upload", "text", "the same by its digest"),
        Key("errata", "path", "a file with known mistakes of a dataset", "errata"),
        Key("errata_upload", "text", "the same by its digest"),
    ),
)
RUN = Table(
    "run",
    "How the run is conducted.",
    (
        Key("seed", "whole", "the seed for everything random (default: 0)", "seed"),
        Key("repeats", "count", "how often each system gets each example", "repeats"),
        Key(
            "controls",
            "choice",
            "`matched` adds cuts of each system's own length",
            "controls",
            ("matched", "none"),
            "process",
        ),
        Key("reuse", "flag", "whether to take answers of earlier runs", "reuse", (), "process"),
        Key("timed_rows", "natural", "rows of each system that are timed alone", "timed_rows"),
        Key("ask_again", "natural", "rows asked a second time", "asked_again", (), "process"),
        Key(
            "expose_references",
            "flag",
            "whether systems see the expected answers; for debugging",
            "expose_references",
            (),
            "process",
        ),
        Key(
            "reference_fields",
            "texts",
            "further fields to hide",
            "reference_fields",
            (),
            "process",
        ),
        Key("labels", "pairs", "labels shown with the run", "labels"),
    ),
)
LIMITS = Table(
    "limits",
    "How much the run may take.",
    (
        Key("max_workers", "count", "the most calls to each system at once", "max_workers"),
        Key("timeout", "seconds", "how long a system has for one call", "timeout"),
        Key("wait", "seconds", "how long to wait for a system that is away", "wait"),
        Key(
            "launch_timeout", "seconds", "how long a `launch` may take to listen", "launch_timeout"
        ),
        Key("max_failures", "share", "fail after so many failed rows, or `5%`", "max_failures"),
        Key("budget_usd", "dollars", "the most US dollars that models may cost", "budget_usd"),
    ),
)
MEMORY = Table(
    "memory",
    "What only memory runs have.",
    (
        Key("budget", "count", "the most tokens for one question", "budget", (), "memory"),
        Key("question_types", "texts", "only these types", "question_types", (), "memory"),
    ),
)
SWEEP = Table(
    "sweep",
    "One system with each of several numbers for one option.",
    (
        Key("system", "text", "its name; not needed where only one is tested"),
        Key("option", "text", "the option"),
        Key("values", "numbers", "two numbers or more"),
    ),
)
GATE = Table(
    "gate",
    "What must hold at the end; the exit code is 1 where it does not.",
    (
        Key("policies", "texts", "sentences such as `f1 at least 0.6`; see: cbench gate --help"),
        Key("system", "text", "the system to check"),
        Key("baseline", "text", "the run to compare with"),
        Key("baseline_system", "text", "the system to compare with"),
        Key("junit", "path", "a file to write the verdicts to, as JUnit XML"),
    ),
)
OUTPUT = Table(
    "output",
    "What is printed.",
    (
        Key("format", "text", "table, json, jsonl, csv, markdown, html, junit, parquet", "output"),
        Key("quiet", "flag", "whether to show no progress", "quiet"),
    ),
)
DAEMON = Table(
    "daemon",
    "Which daemon to use; its token stands in CBENCH_TOKEN.",
    (
        Key("server", "text", "HOST:PORT (default: one inside the command)", "server"),
        Key("tls", "flag", "whether to connect to it over TLS", "tls"),
        Key("tls_ca", "path", "a PEM file with the authorities to trust", "tls_ca"),
        Key("tls_cert", "path", "the client certificate, as a PEM file", "tls_cert"),
        Key("tls_key", "path", "its private key, as a PEM file", "tls_key"),
        Key("imports", "texts", "Python modules that register components", "imports"),
        Key(
            "sandbox",
            "choice",
            "how strictly programs are isolated",
            "sandbox",
            ("strict", "best-effort", "off"),
        ),
        Key("data_dir", "path", "a mirror of datasets", "data_dir"),
    ),
)
TABLES = (
    TOP,
    SYSTEMS,
    DATASETS,
    EVALUATORS,
    METRICS,
    SCORING,
    READER,
    PROMPT,
    JUDGE,
    RUN,
    LIMITS,
    MEMORY,
    SWEEP,
    GATE,
    OUTPUT,
    DAEMON,
)


def table(name: str) -> Table | None:
    """Return a table by its name."""
    return next((each for each in TABLES if each.name == name), None)


def by_flag() -> Iterator[tuple[Table, Key]]:
    """Return the keys outside of lists that one flag says, each with its table."""
    for each in TABLES:
        if not each.is_list:
            yield from ((each, key) for key in each.keys if key.dest)
