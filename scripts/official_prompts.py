"""Check the digests by which official prompts are known, against the repositories that have them.

    python scripts/official_prompts.py DIR...

Each DIR is a checkout of one of the repositories below, or holds several of them. Every prompt that
is found there is shown with its digest and whether it is known; the exit code is 1 if one is not.
"""

import ast
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cbench_server.datasets.prompts.library import is_official
from cbench_server.datasets.prompts.template import digest_of, parse
from cbench_server.errors import InvalidSpec
from cbench_server.evaluators.judge.official_prompts import DIGESTS, prompt_digest
from cbench_server.texts.chat_markup import marked

Prompt = tuple[str, str, str, bool]
"""A dataset or pack, the task or type of question, the digest, and whether it is known."""

_LONGMEMEVAL = {
    "single-session-user": "",
    "temporal-reasoning": "temporal-reasoning",
    "knowledge-update": "knowledge-update",
    "single-session-preference": "single-session-preference",
}
_ALPACA = "src/alpaca_eval/evaluators_configs/alpaca_eval_clf_gpt4_turbo/alpaca_eval_clf.txt"
_ALPACA_COPY = "evaluators_configs/alpaca_eval_clf_gpt4_turbo/alpaca_eval_clf.txt"


def _longbench(root: Path) -> Iterator[Prompt]:
    file = root / "LongBench/config/dataset2prompt.json"
    if file.exists():
        for task, text in json.loads(file.read_text("utf-8")).items():
            yield "longbench", task, digest_of(text), is_official("longbench", task, text)


def _infinitebench(root: Path) -> Iterator[Prompt]:
    file = root / "src/prompt.py"
    if not file.exists():
        return
    for node in ast.parse(file.read_text("utf-8")).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
            continue
        for key, value in zip(node.value.keys, node.value.values, strict=True):
            task, text = _text(key), _text(value)
            # Some need more than a context and a question, or have braces that are no fields.
            with suppress(InvalidSpec):
                if parse(text).fields in ({"context", "question"}, {"context"}):
                    known = is_official("infinitebench", task, text)
                    yield "infinitebench", task, digest_of(text), known


def _text(node: ast.expr | None) -> str:
    """Return a text, or several that are added; empty for anything else."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.BinOp(op=ast.Add()):
            return _text(node.left) + _text(node.right)
    return ""


def _longmemeval(root: Path) -> Iterator[Prompt]:
    file = root / "src/evaluation/evaluate_qa.py"
    if not file.exists():
        return
    tree = ast.parse(file.read_text("utf-8"))
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "get_anscheck_prompt"
    )
    for branch in ast.walk(function):
        if isinstance(branch, ast.If):
            named = {
                _text(each) for each in ast.walk(branch.test) if isinstance(each, ast.Constant)
            }
            kind = next((_LONGMEMEVAL[each] for each in named if each in _LONGMEMEVAL), None)
            body = branch.body if kind is not None else branch.orelse
            text = _text(body[0].value) if body and isinstance(body[0], ast.Assign) else ""
            for place in ("{question}", "{answer}", "{response}"):
                text = text.replace("{}", place, 1)
            if text:
                yield _judge_prompt("longmemeval", "abstention" if kind is None else kind, text)


def _mt_bench(root: Path) -> Iterator[Prompt]:
    file = root / "fastchat/llm_judge/data/judge_prompts.jsonl"
    if not file.exists():
        return
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["type"] == "single":
            said = marked([("system", row["system_prompt"]), ("user", row["prompt_template"])])
            yield _judge_prompt("mt-bench", row["name"], said)


def _alpaca_eval(root: Path) -> Iterator[Prompt]:
    for name in (_ALPACA, _ALPACA_COPY):
        if (root / name).exists():
            yield _judge_prompt("alpaca-eval", "", (root / name).read_text("utf-8"))


def _mem0(root: Path) -> Iterator[Prompt]:
    file = root / "evaluation/metrics/llm_judge.py"
    if not file.exists():
        return
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield _judge_prompt("locomo", "", str(node.value.value))


def _judge_prompt(pack: str, kind: str, text: str) -> Prompt:
    digest = prompt_digest(text)
    return pack, kind, digest, DIGESTS.get(pack, {}).get(kind) == digest


_READERS = (_longbench, _infinitebench, _longmemeval, _mt_bench, _alpaca_eval, _mem0)


def main(folders: list[str]) -> int:
    """Look through checkouts, and say what is known."""
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    roots = [root for name in folders for root in (Path(name), *Path(name).glob("*/"))]
    found = [prompt for root in roots for read in _READERS for prompt in read(root)]
    for dataset, kind, digest, is_known in found:
        print(f"{dataset}\t{kind or '-'}\t{digest}\t{'known' if is_known else 'NOT KNOWN'}")
    unknown = sum(not is_known for *_, is_known in found)
    print(f"{len(found)} prompts, {unknown} not known", file=sys.stderr)
    return 1 if unknown or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
