"""`cache_dir`: no row that the system would not give as it is now, and no call without need."""

import importlib
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from cbench_server import EvalResult, evaluate
from cbench_server.evaluators import AnswerQuality, MultipleChoiceAccuracy
from cbench_server.metrics import MeanScore
from tests.fixtures import preloaded

Example = dict[str, Any]
EXAMPLES = [{"id": number, "context": "c", "answer": "Paris"} for number in range(3)]
CALLS: list[str] = []
TEXT = "Paris"

SYSTEM = """
from {helper} import answer
import {calls} as calls

class System:
    name = "system"
    {declared}
    def __init__(self, **settings):
        self.__dict__.update(settings)

    def process(self, example):
        calls.CALLS.append(example["id"])
        return {{**example, "response": answer(example)}}
"""


class Echo:
    name = "echo"

    def __init__(self, word: str = "Paris") -> None:
        self.word = word

    def process(self, example: Example) -> Example:
        CALLS.append(example["id"])
        return {**example, "response": self.word}


class Package:
    """A package in a folder, whose class calls a function of another module of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.name = name
        self.folder.mkdir()
        self.write("__init__.py", "")
        self.write("helper.py", "def answer(example):\n    return 'Paris'\n")
        self.write("calls.py", "CALLS = []\n")
        self.declare("")

    def declare(self, text: str) -> None:
        names = {"helper": f"{self.name}.helper", "calls": f"{self.name}.calls"}
        self.write("system.py", SYSTEM.format(declared=text, **names))

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)

    def load(self) -> ModuleType:
        """Import it anew, as a new process would."""
        for name in [each for each in sys.modules if each.partition(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        return importlib.import_module(f"{self.name}.system")

    @property
    def calls(self) -> list[Any]:
        found: list[Any] = importlib.import_module(f"{self.name}.calls").CALLS
        return found


@pytest.fixture
def package(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Package]:
    sys.path.insert(0, str(tmp_path))
    was = sys.dont_write_bytecode
    yield Package(tmp_path, f"cached_{abs(hash(request.node.name))}")
    sys.dont_write_bytecode = was
    sys.path.remove(str(tmp_path))


def run(system: Any, folder: Path, *evaluators: Any, **options: Any) -> EvalResult:
    CALLS.clear()
    return evaluate(
        [system],
        EXAMPLES,
        evaluators or [AnswerQuality()],
        [MeanScore()],
        progress=False,
        cache_dir=folder / "cache",
        **options,
    )


def test_a_module_of_the_same_package_is_part_of_what_an_answer_is_known_by(
    package: Package, tmp_path: Path
) -> None:
    first = run(package.load().System(), tmp_path)
    assert (first.summary["system"]["mean_score"], len(package.calls)) == (1.0, 3)
    again = run(package.load().System(), tmp_path)
    assert (all(row.reused for row in again.rows), package.calls) == (True, [])
    package.write("helper.py", "def answer(example):\n    return 'Rome'\n")
    changed = run(package.load().System(), tmp_path)
    assert (changed.summary["system"]["mean_score"], len(package.calls)) == (0.0, 3)


def test_a_prompt_in_the_package_is_part_of_it_too(package: Package, tmp_path: Path) -> None:
    package.write("prompt.txt", "Be brief.")
    run(package.load().System(), tmp_path)
    package.write("prompt.txt", "Be kind.")
    run(package.load().System(), tmp_path)
    assert len(package.calls) == 3


def test_code_that_was_edited_after_it_was_imported_is_not_cached(
    package: Package, tmp_path: Path
) -> None:
    system = package.load().System()
    package.write("helper.py", "def answer(example):\n    return 'Rome'\n")
    with pytest.warns(UserWarning, match="helper.py has changed since it was imported"):
        run(system, tmp_path)
    # What the old code answered must not pass for what the new code would.
    assert run(package.load().System(), tmp_path).summary["system"]["mean_score"] == 0.0


def test_options_and_attributes_tell_systems_apart(package: Package, tmp_path: Path) -> None:
    kind = package.load().System
    for settings in ({"ratio": 0.3}, {"ratio": 0.5}, {"ratio": 0.3}):
        run(kind(**settings), tmp_path)
    assert len(package.calls) == 6


def test_what_a_function_around_it_was_given_tells_systems_apart(tmp_path: Path) -> None:
    def made(word: str) -> Any:
        class Inner:
            name = "inner"

            def process(self, example: Example) -> Example:
                CALLS.append(word)
                return {**example, "response": word}

        return Inner()

    assert run(made("Paris"), tmp_path).summary["inner"]["mean_score"] == 1.0
    assert run(made("Rome"), tmp_path).summary["inner"]["mean_score"] == 0.0
    assert len(CALLS) == 3
    run(made("Rome"), tmp_path)
    assert CALLS == []


def test_a_value_of_its_module_tells_systems_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Says:
        name = "says"

        def process(self, example: Example) -> Example:
            return {**example, "response": TEXT}

    assert run(Says(), tmp_path).summary["says"]["mean_score"] == 1.0
    monkeypatch.setitem(globals(), "TEXT", "Rome")
    assert run(Says(), tmp_path).summary["says"]["mean_score"] == 0.0


def test_what_cannot_be_known_is_said_once_and_a_version_helps(
    package: Package, tmp_path: Path
) -> None:
    def client() -> Any:
        return threading.local()

    kind = package.load().System
    for _ in range(2):
        with pytest.warns(UserWarning, match="nothing of") as said:
            run(kind(client=client(), ratio=1), tmp_path)
        [message] = [str(each.message) for each in said]
        assert '`client` holds a _thread._local. Declare `version = "1"`' in message
    assert len(package.calls) == 6
    package.declare('version = "1"')
    kind = package.load().System
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ratio in (1, 2, 1):
            run(kind(client=client(), ratio=ratio), tmp_path)
    assert len(package.calls) == 6
    package.declare('version = "2"')
    run(package.load().System(client=client(), ratio=1), tmp_path)
    assert len(package.calls) == 3


def test_a_class_from_a_console_is_cached_by_its_version_only(tmp_path: Path) -> None:
    program = f"""
from cbench_server import evaluate
calls = []
class System:
    name = "system"
    def process(self, example):
        calls.append(self.name)
        return {{**example, "response": "Paris"}}
class Versioned(System):
    name = "versioned"
    version = "1"
examples = [{{"id": 1, "context": "c", "answer": "Paris"}}]
for _ in range(2):
    evaluate([System(), Versioned()], examples, [], [], progress=False, cache_dir={str(tmp_path)!r})
print(calls)
"""
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['system', 'versioned', 'system']"
    # Once for each call.
    assert done.stderr.count('system "system" is cached') == 2
    assert done.stderr.count("defined in a console") == 2


def test_a_script_is_known_by_itself_and_by_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'Paris'\ndef answer():\n    return WORD\n")
    (tmp_path / "script.py").write_text(
        """
from cbench_server import evaluate
from cbench_server.evaluators import AnswerQuality
from cbench_server.metrics import MeanScore
class System:
    name = "system"
    def process(self, example):
        from helper import answer
        return {**example, "response": answer()}
examples = [{"id": 1, "context": "c", "answer": "Paris"}]
result = evaluate([System()], examples, [AnswerQuality()], [MeanScore()], progress=False,
                  cache_dir="cache")
print(result.rows[0].reused, result.summary["system"]["mean_score"])
"""
    )

    def said() -> str:
        done = preloaded.run(
            [sys.executable, str(tmp_path / "script.py")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return str(done.stdout.strip())

    assert [said(), said()] == ["False 1.0", "True 1.0"]
    (tmp_path / "helper.py").write_text("WORD = 'Rome'\ndef answer():\n    return WORD\n")
    assert said() == "False 0.0"


class Counted:
    """An evaluator that counts how often it is asked."""

    name = "counted"
    asked: ClassVar[list[str]] = []

    def __init__(self, word: str, version: str = "1") -> None:
        self.options = {"word": word}
        self.version = version

    def score(self, original: Example, processed: Example) -> dict[str, float]:
        self.asked.append(self.options["word"])
        return {"counted": float(processed["response"] == self.options["word"])}


def test_a_new_evaluator_scores_stored_answers_and_nothing_else_is_called(tmp_path: Path) -> None:
    Counted.asked.clear()
    run(Echo(), tmp_path, Counted("Paris"))
    assert (len(CALLS), len(Counted.asked)) == (3, 3)
    both = run(Echo(), tmp_path, Counted("Paris"), AnswerQuality())
    assert (CALLS, len(Counted.asked)) == ([], 3)
    assert both.rows[0].scores["counted"] == both.rows[0].scores["f1"] == 1.0
    again = run(Echo(), tmp_path, AnswerQuality(), Counted("Paris"))
    assert (CALLS, len(Counted.asked)) == ([], 3)
    assert again.rows[0].primary_score == "f1"
    fewer = run(Echo(), tmp_path, AnswerQuality())
    assert "counted" not in fewer.rows[0].scores
    other = run(Echo(), tmp_path, Counted("Rome"))
    assert (CALLS, other.summary["echo"]["mean_score"]) == ([], 0.0)
    run(Echo(), tmp_path, Counted("Rome", "2"))
    assert (CALLS, len(Counted.asked)) == ([], 9)


def test_of_equal_scores_the_later_evaluator_s_counts_also_in_the_cache(tmp_path: Path) -> None:
    run(Echo(), tmp_path, Counted("Rome"))
    both = run(Echo(), tmp_path, Counted("Paris"), Counted("Rome"))
    assert [row.scores["counted"] for row in both.rows] == [0.0] * 3
    assert CALLS == []


def test_an_evaluator_that_failed_is_asked_again_and_the_system_is_not(tmp_path: Path) -> None:
    class Moody(Counted):
        name = "moody"

        def score(self, original: Example, processed: Example) -> dict[str, float]:
            if not (tmp_path / "well").exists():
                raise ValueError("ill")
            return super().score(original, processed)

    assert run(Echo(), tmp_path, Moody("Paris")).rows[0].evaluator_failures
    (tmp_path / "well").touch()
    result = run(Echo(), tmp_path, Moody("Paris"))
    assert (CALLS, result.rows[0].scores) == ([], {"counted": 1.0})


def test_another_score_that_counts_needs_no_call(tmp_path: Path) -> None:
    run(Echo("The Paris"), tmp_path)
    result = run(Echo("The Paris"), tmp_path, score_field="recall")
    assert (CALLS, result.config["headlines"]) == ([], {"echo": ["recall"]})


def test_a_tokenizer_is_known_by_what_it_does(tmp_path: Path) -> None:
    counts = []
    for tokenizer in (lambda text: 1, lambda text: 2, lambda text: 2):
        counts.append(run(Echo(), tmp_path, tokenizer=tokenizer).rows[0].input_tokens)
    assert counts[0] * 2 == counts[1] == counts[2]


def test_an_object_that_changes_as_it_works_is_told_how_to_be_known(tmp_path: Path) -> None:
    class Counts(Echo):
        calls = 0

        def process(self, example: Example) -> Example:
            self.calls += 1
            return super().process(example)

    class Known(Counts):
        options: ClassVar[dict[str, str]] = {"word": "Paris"}

    with pytest.warns(UserWarning, match="changes its `calls` as it works.*`options`"):
        run(Counts(), tmp_path)
    system = Known()
    for _ in range(2):
        run(system, tmp_path)
    assert CALLS == []


def test_what_would_come_back_changed_is_not_kept(tmp_path: Path) -> None:
    class Sets(Echo):
        def process(self, example: Example) -> Example:
            return {**super().process(example), "seen": {1, 2}}

    for _ in range(2):
        assert run(Sets(), tmp_path).rows[0].processed["seen"] == {1, 2}  # type: ignore[index]
    assert len(CALLS) == 3


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    run(Echo(), tmp_path)
    for path in (tmp_path / "cache").rglob("*.answer"):
        path.write_bytes(path.read_bytes()[:-5])
    assert run(Echo(), tmp_path).summary["echo"]["mean_score"] == 1.0
    assert len(CALLS) == 3


def test_a_dataset_that_scores_otherwise_scores_stored_answers(tmp_path: Path) -> None:
    letters = [{**each, "correct_letter": "A", "choices": ["x", "y"]} for each in EXAMPLES]
    for evaluators in ([AnswerQuality()], [MultipleChoiceAccuracy()]):
        CALLS.clear()
        result = evaluate(
            [Echo("A")], letters, evaluators, progress=False, cache_dir=tmp_path / "cache"
        )
    assert CALLS == []
    assert result.summary["echo"]["mean_score"] == 1.0
