"""Limits: how much a client, a system, a model or a program may ask for, each declared once.

`docs/operations.md` lists them, and each names the test that meets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound, and what happens beyond it."""

    name: str
    value: float
    unit: str
    beyond: str
    test: str


LIMITS: list[Limit] = []


def limit(name: str, value: Number, unit: str, beyond: str, test: str) -> Number:
    """Declare a limit and return its value."""
    LIMITS.append(Limit(name, value, unit, beyond, test))
    return value


_MET = "tests/fuzzing/test_limits.py::test_"

# Of a run.
MAX_REPEATS = limit(
    "`repeats` of a run", 10_000, "", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_ROW_TIMEOUT_S = limit(
    "`row_timeout` of a run", 21_600, "s", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_WAIT_TIMEOUT_S = limit(
    "`wait_timeout` of a run", 86_400, "s", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_NAME = limit(
    "name of a system", 200, "characters", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_LABELS = limit(
    "labels of a run together",
    1_000_000,
    "characters",
    "refused",
    f"{_MET}a_spec_beyond_a_limit_is_refused",
)
MAX_SYSTEMS = limit(
    "systems of a run", 256, "", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_DATASETS = limit(
    "datasets of a run", 128, "", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_EVALUATORS = limit(
    "evaluators of a run", 64, "", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_METRICS = limit(
    "metrics of a run", 64, "", "refused", f"{_MET}a_spec_beyond_a_limit_is_refused"
)
MAX_PATH = limit(
    "path of a mapping",
    1_000,
    "characters",
    "refused",
    f"{_MET}a_path_of_a_mapping_is_only_so_long",
)
MAX_TEMPLATE_LENGTH = limit(
    "template of a prompt",
    1_000_000,
    "characters",
    "refused",
    f"{_MET}a_template_is_only_so_long",
)
MAX_TEMPLATE_PIECES = limit(
    "lines and braces in it",
    20_000,
    "",
    "refused",
    f"{_MET}a_template_is_only_so_long",
)
MAX_TIMES_OF_A_FIELD = limit(
    "times that it names one field",
    20,
    "",
    "refused",
    f"{_MET}a_template_is_only_so_long",
)
MAX_CONCURRENCY = limit(
    "`max_concurrency` of a run, and calls of a system that are under way",
    1024,
    "",
    "refused; a system that takes more is sent so many",
    f"{_MET}a_daemon_refuses_them",
)
MAX_FEW_SHOT = limit(
    "few-shot examples in a prompt",
    100,
    "",
    "refused",
    f"{_MET}a_daemon_refuses_them",
)
MAX_GROUPS = limit(
    "groups of a field that are shown",
    200,
    "",
    "none of them is shown, and a note says why",
    "tests/cli/test_groups.py::test_a_field_with_too_many_values_is_named_and_not_shown",
)
MAX_ID = limit("id of an example", 1_000, "characters", "refused", f"{_MET}an_id_is_only_so_long")
MAX_REPLICAS = limit(
    "replicas of a system", 256, "", "refused", f"{_MET}a_system_has_only_so_many_replicas"
)

# Of datasets.
MAX_LINE_BYTES = limit(
    "line of a file of examples",
    128 * 2**20,
    "bytes",
    "refused, or left out with --skip-bad-lines, and never held",
    f"{_MET}a_line_of_a_file_is_only_so_long",
)
MAX_GENERATED_TOKENS = limit(
    "length of a generated context",
    2_000_000,
    "tokens",
    "refused",
    f"{_MET}a_generated_dataset_is_only_so_large",
)
MAX_GENERATED_COUNT = limit(
    "generated examples for each length and depth",
    10_000,
    "",
    "refused",
    f"{_MET}a_generated_dataset_is_only_so_large",
)

# Of what is scored.
MAX_SCORE_NAME = limit(
    "name of a score",
    200,
    "characters",
    "the row's evaluation fails",
    f"{_MET}a_name_of_a_score_is_only_so_long",
)
MAX_DETAILS = limit(
    "what an evaluator tells beside its scores of a row",
    16_777_216,
    "bytes",
    "the row's evaluation fails",
    f"{_MET}details_are_only_so_large",
)
MAX_PROGRAM = limit(
    "program that a system writes",
    16 * 2**20,
    "characters",
    "it fails its tests, unread",
    f"{_MET}a_program_is_only_so_long",
)

# Of other processes.
MAX_OFFERED = limit(
    "names that an attachment offers",
    256,
    "",
    "refused",
    f"{_MET}an_attachment_offers_only_so_much",
)
MAX_ATTACHED = limit(
    "attached processes", 256, "", "refused", f"{_MET}only_so_many_processes_are_attached"
)
MAX_DESCRIBED = limit(
    "systems that one process describes",
    64,
    "",
    "the run is refused",
    f"{_MET}a_process_describes_only_so_many_systems",
)

# Of requests, which the event loop parses and looks through.
MAX_REQUEST_BYTES = limit(
    "a request of `Bench` that is no upload or import",
    2**20,
    "bytes",
    "refused",
    f"{_MET}a_request_is_only_so_large",
)
MAX_REQUEST_PARTS = limit(
    "fields of all depths in it", 20_000, "", "refused", f"{_MET}a_request_is_only_so_large"
)

# Of messages of clients, which are in memory several times while they are worked on.
LARGE_MESSAGE = 2**20
"""Bytes of a message from which on it is held in its place until it is answered."""
MAX_MESSAGES_AT_ONCE = limit(
    "messages of 1 MiB and more, uploads and imports of one client that are worked on at once",
    4,
    "",
    "further ones wait; others have room of their own",
    "tests/e2e/test_message_room.py::test_large_messages_of_one_client_wait_for_each_other",
)
MESSAGE_SECONDS = limit(
    "time for the message of a call that has one",
    60,
    "s",
    "refused",
    "tests/e2e/test_message_room.py::test_a_call_that_never_sends_its_message_is_refused",
)

# Of files of runs, which a client sends and whose parts are held one at a time.
MAX_IMPORTED_BYTES = limit(
    "an example or answer of an imported run, unpacked",
    128 * 2**20,
    "bytes, or `max_message_mb` if that is more",
    "refused",
    "tests/storage/test_import_room.py::test_a_bomb_is_refused_and_fills_no_memory",
)
MAX_IMPORTED_VALUES = limit(
    "values in it",
    2_000_000,
    "",
    "refused",
    "tests/storage/test_import_room.py::test_a_bomb_is_refused_and_fills_no_memory",
)

# Of memory: a text is held once as itself, and as often again while it is decoded and stored.
MAX_IMPORTED_PLACES = limit(
    "examples of an imported run, or its events",
    2**30,
    "",
    "refused",
    "tests/storage/test_import_checks.py::test_what_nobody_could_be_shown_is_refused",
)
MAX_HELD_BYTES = limit(
    "examples and answers that a run holds in memory",
    128 * 2**20,
    "bytes, or one row",
    "calls wait until rows are stored",
    "tests/runs/test_slots.py::test_large_answers_wait_for_those_before_them",
)
MAX_ALL_HELD_BYTES = limit(
    "the same of all runs together",
    256 * 2**20,
    "bytes, and one row of each run",
    "calls wait until rows are stored",
    "tests/runs/test_slots.py::test_runs_share_what_may_be_held",
)
LARGE_ANSWER = 2**20
"""Bytes of an answer from which on it counts how many of them are under way."""

# Of judges.
MAX_JUDGE_REPEATS = limit(
    "`repeats` of a judge", 100, "", "refused", f"{_MET}a_judge_beyond_a_limit_is_refused"
)
MAX_JUDGE_RETRIES = limit(
    "`max_retries` of a judge", 20, "", "refused", f"{_MET}a_judge_beyond_a_limit_is_refused"
)
MAX_JUDGE_TIMEOUT_S = limit(
    "`timeout` of a judge", 3_600.0, "s", "refused", f"{_MET}a_judge_beyond_a_limit_is_refused"
)
MIN_JUDGE_RPM = limit(
    "least `rpm` of a judge", 0.1, "a minute", "refused", f"{_MET}a_judge_beyond_a_limit_is_refused"
)
MAX_MODEL_NAME = limit(
    "model and base URL of a judge",
    2_000,
    "characters",
    "refused",
    f"{_MET}a_judge_beyond_a_limit_is_refused",
)
MAX_VERDICT_HEAD = limit(
    "beginning of a judge's reply that is read",
    3_000,
    "characters",
    "the middle is left out",
    f"{_MET}of_a_long_reply_both_ends_are_read",
)
MAX_VERDICT_TAIL = limit(
    "end of a judge's reply that is read",
    1_000,
    "characters",
    "the middle is left out",
    f"{_MET}of_a_long_reply_both_ends_are_read",
)

# Of models.
MAX_ANSWER_BYTES = limit(
    "answer of a model",
    16 * 2**20,
    "bytes",
    "the call fails with BAD_RESPONSE",
    f"{_MET}a_model_answers_only_so_much",
)
MAX_REPLY_VALUES = limit(
    "values in the answer of a model",
    100_000,
    "",
    "the call fails with BAD_RESPONSE",
    f"{_MET}a_model_answers_with_only_so_many_values",
)
MAX_TOKEN_VALUES = limit(
    "values in an answer on the likelihood of tokens",
    1_000_000,
    "",
    "the call fails with BAD_RESPONSE",
    f"{_MET}a_model_tells_of_only_so_many_tokens",
)

# Of the event loop.
LONG_TEXT = limit(
    "text worked on by the event loop itself",
    48 * 1024,
    "characters",
    "scored in a worker",
    "tests/fuzzing/test_hostile_text.py::test_no_step_holds_the_loop",
)
TURN_S = 0.02
"""Seconds after which the event loop, which works on many rows in a turn, sees to others."""

_VALUE = 64
"""What a value that is no text counts: about what it takes in memory."""
_MOST_LOOKED_AT = 200_000
"""Values that are looked at: more than an answer may hold are long in any case."""
_PLAIN = frozenset({int, float, bool, type(None)})
_NESTED = frozenset({list, dict})
_CONTAINERS = (list, tuple, Mapping)
_TEXTS = (str, bytes)


def text_size(example: Mapping[str, Any]) -> int:
    """Estimate the bytes an example holds, cheaply: its names, texts and values, however deep."""
    size = names_size(example)
    left: list[Any] = []
    for value in example.values():
        # Nearly all is text, and asking for the type itself is three times as quick.
        kind = type(value)
        if kind is str:
            size += len(value)
        elif kind in _PLAIN:
            size += 16
        elif kind in _NESTED or isinstance(value, _CONTAINERS):
            left.append(value)
        else:
            size += len(value) if isinstance(value, _TEXTS) else 16
    return size + _nested_size(left) if left else size


def names_size(fields: Mapping[Any, Any]) -> int:
    """Return how long the names of fields are together."""
    try:
        return sum(map(len, fields))
    except TypeError:  # A system in our process may name fields otherwise.
        return sum([len(name) for name in fields if isinstance(name, str)])


def _nested_size(left: list[Any]) -> int:
    size = looked_at = 0
    while left:
        container = left.pop()
        size += _VALUE * len(container)
        looked_at += len(container)
        if looked_at > _MOST_LOOKED_AT:
            return size
        if isinstance(container, Mapping):
            size += names_size(container)
            container = container.values()
        for item in container:
            kind = type(item)
            if kind is str:
                size += len(item)
            elif kind in _PLAIN:
                pass
            elif kind in _NESTED or isinstance(item, _CONTAINERS):
                left.append(item)
            elif isinstance(item, _TEXTS):
                size += len(item)
    return size
