"""Microseconds per row for each evaluator, beside a reference or another checkout.

    python benchmarks/scoring.py [NAME...] [--beside PATH] [--turns 5]

`--beside` names another checkout (with its .venv): both take turns, and the
median of each is compared.

Every case is scored on pairs not seen before, as in a run, and beside it the
reference implementation where there is one. Figures are CPU time of this
process; those of code-execution and the judges, whose work is done elsewhere,
are wall-clock time. The judges ask a server in this process that answers at
once, so theirs is the cost of asking.
"""

import argparse
import json
import random
import re
import statistics
import string
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from checkouts import HERE, run_in

from cbench_server.evaluators import (
    AnswerQuality,
    CodeExecution,
    ContextRetention,
    IFEvalChecker,
    LLMJudge,
    MathEquivalence,
    MemoryJudge,
    MultipleChoiceAccuracy,
    NLILabelMatch,
    SummarizationQuality,
)

Pair = tuple[dict[str, Any], dict[str, Any]]
ROUNDS = 200


@dataclass(frozen=True)
class Case:
    """One evaluator on one kind of pair; `make` gives a new pair for each number."""

    evaluator: str
    label: str
    score: Callable[[dict[str, Any], dict[str, Any]], Any]
    make: Callable[[int], Pair]
    reference: Callable[[dict[str, Any], dict[str, Any]], Any] | None = None
    clock: Callable[[], float] = time.process_time
    rounds: int = ROUNDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="evaluators; all if none")
    parser.add_argument("--beside", type=Path, help="another checkout to compare with")
    parser.add_argument("--turns", type=int, default=5, help="with --beside, for each checkout")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = [each for each in CASES if each.evaluator in (arguments.names or [each.evaluator])]
    if arguments.json:
        print(json.dumps([microseconds(case.score, case) for case in cases]))
    elif arguments.beside:
        compare(cases, arguments)
    else:
        print("| evaluator | pair | ours, us | reference, us |")
        print("|---|---|---:|---:|")
        for case in cases:
            ours = microseconds(case.score, case)
            theirs = f"{microseconds(case.reference, case):.0f}" if case.reference else ""
            print(f"| {case.evaluator} | {case.label} | {ours:.0f} | {theirs} |")


def compare(cases: list[Case], arguments: argparse.Namespace) -> None:
    """Print the cases of this checkout beside those of another."""
    found: dict[Path, list[list[float]]] = {HERE: [], arguments.beside: []}
    for _ in range(arguments.turns):
        for checkout, turns in found.items():
            turns.append(run_in(checkout, Path(__file__).name, "--json", *arguments.names))
    medians = [
        [statistics.median(turn) for turn in zip(*each, strict=True)] for each in found.values()
    ]
    print("| evaluator | pair | ours, us | beside, us | ratio |")
    print("|---|---|---:|---:|---:|")
    for case, ours, theirs in zip(cases, *medians, strict=True):
        figures = f"{ours:.0f} | {theirs:.0f} | {ours / theirs:.2f}"
        print(f"| {case.evaluator} | {case.label} | {figures} |")


def microseconds(score: Callable[[dict[str, Any], dict[str, Any]], Any], case: Case) -> float:
    """Return the time a pair takes."""
    pairs = [case.make(number) for number in range(case.rounds)]
    score(*case.make(case.rounds))
    started = case.clock()
    for original, processed in pairs:
        score(original, processed)
    return (case.clock() - started) / case.rounds * 1e6


def answer(words: int) -> Callable[[int], Pair]:
    """Make responses of so many words with the answer at their end."""

    def make(number: int) -> Pair:
        response = " ".join(f"The w{place % 997}," for place in range(words))
        return {"answer": f"a river {number}"}, {"response": f"{response} river {number}."}

    return make


def squad_script(original: dict[str, Any], processed: dict[str, Any]) -> tuple[float, bool]:
    """Score as the official SQuAD v1.1 script does."""

    def normalize(text: str) -> str:
        text = "".join(c for c in text.lower() if c not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    gold, given = normalize(original["answer"]), normalize(processed["response"])
    common = sum((Counter(gold.split()) & Counter(given.split())).values())
    precision, recall = common / len(given.split()), common / len(gold.split())
    return 2 * precision * recall / (precision + recall) if common else 0.0, gold == given


def retention(words: int) -> Callable[[int], Pair]:
    """Make contexts of so many words, of which the system left half."""

    def make(number: int) -> Pair:
        context = f"It is river {number}. " + " ".join(f"w{place}" for place in range(words))
        original = {"context": context, "answer": f"river {number}"}
        return original, {"context": context[: len(context) // 2]}

    return make


def program(lines: int) -> Callable[[int], Pair]:
    """Make solutions of so many lines."""

    def make(number: int) -> Pair:
        original = {
            "context": "def add(a, b):\n",
            "test": f"def check(c):\n    assert c(1, {number}) == {number} + 1\n",
            "entry_point": "add",
        }
        return original, {"response": "    a = a + 0\n" * lines + "    return a + b\n"}

    return make


def judged(words: int) -> Callable[[int], Pair]:
    """Make responses of so many words for a judge."""

    def make(number: int) -> Pair:
        original = {"question": f"What is {number} + 0?", "answer": str(number)}
        return original, {"response": f"It is {number}. " + "word " * words}

    return make


class Model(BaseHTTPRequestHandler):
    """Answers every chat with a verdict that suits both judges."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = str(asked["messages"])
        verdict = "YES" if "YES" in words else "4"
        reply = json.dumps({"choices": [{"message": {"content": verdict}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


def start_model() -> str:
    """Serve the model in a thread, and return its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def multiple_choice(sentences: int) -> Callable[[int], Pair]:
    """Make responses that reason for so many sentences and then state their answer."""

    def make(number: int) -> Pair:
        reasoning = f"A planet spins faster after impact {number}, so option A is less likely. "
        original = {
            "correct_letter": "B",
            "choices": [f"{text} {number}" for text in ("slower", "faster", "heavier", "older")],
        }
        return original, {"response": reasoning * sentences + "The answer is (B)."}

    return make


def mmlu_pro_regex(original: dict[str, Any], processed: dict[str, Any]) -> bool:
    """Find the answer as the first of the MMLU-Pro grader's patterns does."""
    found = re.search(r"answer is \(?([A-J])\)?", processed["response"])
    return found is not None and found[1] == original["correct_letter"]


def ifeval(sentences: int) -> Callable[[int], Pair]:
    """Make responses of so many sentences that need a word, a sentence and a language count."""

    def make(number: int) -> Pair:
        original = {
            "instruction_id_list": [
                "length_constraints:number_words",
                "length_constraints:number_sentences",
                "change_case:english_lowercase",
            ],
            "kwargs": [
                {"num_words": 100, "relation": "at least"},
                {"num_sentences": 10, "relation": "less than"},
                {},
            ],
        }
        sentence = f"the planet spins faster after impact {number} and nobody knows why. "
        return original, {"response": sentence * sentences}

    return make


def nli(sentences: int) -> Callable[[int], Pair]:
    """Make responses that reason for so many sentences and then state their label."""

    def make(number: int) -> Pair:
        reasoning = f"Clause {number} allows copies, which the hypothesis does not mention. "
        response = reasoning * sentences + "Therefore, the answer is contradiction."
        return {"answer": "Contradiction"}, {"response": response}

    return make


def solution(steps: int) -> Callable[[int], Pair]:
    """Make solutions of so many steps that end as those of GSM8K do."""

    def make(number: int) -> Pair:
        step = f"She sells {number} eggs at $2, so she makes {number} * 2 = ${number * 2} a day.\n"
        return {"answer": str(number * 2)}, {"response": step * steps + f"#### {number * 2}"}

    return make


def summary(words: int) -> Callable[[int], Pair]:
    """Make two texts of so many words out of 997."""

    def make(number: int) -> Pair:
        gold = " ".join(f"w{(place * 7 + number) % 997}" for place in range(words))
        response = " ".join(f"w{(place * 11 + number) % 997}" for place in range(words))
        return {"answer": gold}, {"response": response}

    return make


def random_summary(words: int) -> Callable[[int], Pair]:
    """Make two texts of so many words, drawn from as many."""

    def make(number: int) -> Pair:
        drawn = random.Random(number).choices(range(words), k=2 * words)
        texts = [" ".join(f"w{word}" for word in drawn[part::2]) for part in range(2)]
        return {"answer": texts[0]}, {"response": texts[1]}

    return make


def by_math_verify(original: dict[str, Any], processed: dict[str, Any]) -> bool:
    from math_verify import parse, verify

    gold, given = parse(original["answer"]), parse(processed["response"])
    return bool(verify(gold, given))


def by_rouge_score(original: dict[str, Any], processed: dict[str, Any]) -> object:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"]).score(original["answer"], processed["response"])


MODEL = start_model()
CASES = [
    Case("answer-quality", "short", AnswerQuality().score, answer(5), squad_script),
    Case("answer-quality", "5,000 words", AnswerQuality().score, answer(5_000), squad_script),
    Case("context-retention", "50 words", ContextRetention().score, retention(50)),
    Case("context-retention", "5,000 words", ContextRetention().score, retention(5_000)),
    Case("code-execution", "2 lines", CodeExecution().score, program(1), clock=time.perf_counter),
    Case(
        "code-execution",
        "1,000 lines",
        CodeExecution().score,
        program(999),
        clock=time.perf_counter,
    ),
    Case("llm-judge", "short", LLMJudge(MODEL).score, judged(5), clock=time.perf_counter),
    Case("llm-judge", "5,000 words", LLMJudge(MODEL).score, judged(5_000), clock=time.perf_counter),
    Case("memory-judge", "short", MemoryJudge(MODEL).score, judged(5), clock=time.perf_counter),
    Case(
        "memory-judge",
        "5,000 words",
        MemoryJudge(MODEL).score,
        judged(5_000),
        clock=time.perf_counter,
    ),
    Case("math-equivalence", "5 steps", MathEquivalence().score, solution(5), by_math_verify),
    Case("math-equivalence", "100 steps", MathEquivalence().score, solution(100)),
    Case(
        "summarization-quality",
        "50 words",
        SummarizationQuality().score,
        summary(50),
        by_rouge_score,
    ),
    Case(
        "summarization-quality",
        "5,000 words",
        SummarizationQuality().score,
        summary(5_000),
        by_rouge_score,
        rounds=2,
    ),
    Case(
        "summarization-quality",
        "5,000 random words",
        SummarizationQuality().score,
        random_summary(5_000),
        rounds=50,
    ),
    Case("ifeval", "2 sentences", IFEvalChecker().score, ifeval(2)),
    Case("ifeval", "40 sentences", IFEvalChecker().score, ifeval(40)),
    Case("nli-label-match", "short", NLILabelMatch().score, nli(0)),
    Case("nli-label-match", "20 sentences", NLILabelMatch().score, nli(20)),
    Case(
        "multiple-choice",
        "short",
        MultipleChoiceAccuracy().score,
        multiple_choice(0),
        mmlu_pro_regex,
    ),
    Case(
        "multiple-choice",
        "20 sentences",
        MultipleChoiceAccuracy().score,
        multiple_choice(20),
        mmlu_pro_regex,
    ),
]

if __name__ == "__main__":
    main()
