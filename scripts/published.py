"""Published figures, computed again from published predictions by `cbench run --predictions`.

    python scripts/published.py bbh CHECKOUT
    python scripts/published.py longbench CHECKOUT --model llama2-7b-chat-4k
    python scripts/published.py infinitebench CHECKOUT
    python scripts/published.py mmlu-pro CHECKOUT
    python scripts/published.py ifeval CHECKOUT

CHECKOUT is a clone, bare or not, of the repository that has the predictions:
suzgunmirac/BIG-Bench-Hard, viridisGreen/LongBench (`pred/`), OpenBMB/InfiniteBench,
TIGER-AI-Lab/MMLU-Pro, or google-research/google-research. The references are
taken from there as well, into a folder that is read like a mirror of the hub;
contexts are left empty where the repository does not have them, since no
evaluator here reads one. Nothing is downloaded, and nothing is kept.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

Row = dict[str, Any]


class Checkout:
    """The files of a repository at its newest commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def names(self, prefix: str) -> list[str]:
        """List the files that begin so, by name."""
        found = self._git("ls-tree", "-r", "-z", "--name-only", "HEAD", "--", prefix)
        return sorted(name for name in found.decode().split("\0") if name)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return self._git("cat-file", "blob", f"HEAD:{name}")

    def lines(self, name: str) -> list[Row]:
        """Return the rows of a JSON Lines file; what a line has behind its row is left out."""
        decoder = json.JSONDecoder()
        lines = self.read(name).decode().split("\n")
        return [decoder.raw_decode(line.strip())[0] for line in lines if line.strip()]


@dataclass
class Model:
    """The predictions of one model, with the figures that were published for them."""

    name: str
    datasets: list[str]
    mirror: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of each file of the mirror."""
    predictions: list[Row] = field(default_factory=list)
    published: dict[str, str] = field(default_factory=dict)
    """Percentages as they are printed, by the key of the summary."""
    flags: list[str] = field(default_factory=list)
    drawn: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many verdicts, right here, the official program draws at random, and of how many."""


def bbh(checkout: Checkout) -> Iterator[Model]:
    """The authors' outputs of code-davinci-002, direct and with chains of thought."""
    for style in ("direct", "cot"):
        folder = f"code-davinci-002-outputs/code-davinci-002-{style}/"
        model = Model(f"code-davinci-002 {style}", ["bbh:all"])
        accuracies = []
        for name in checkout.names(folder):
            found = re.fullmatch(rf"{folder}(\w+)_few_shot_template_0-255000\.json", name)
            if not found:
                continue
            task = found[1]
            examples = json.loads(checkout.read(f"bbh/{task}.json"))["examples"]
            model.mirror[f"lukaemon/bbh/{task}/test"] = examples
            label = f"bbh:{task}"
            for number, output in enumerate(json.loads(checkout.read(name))["outputs"]):
                model.predictions.append(
                    {"dataset": label, "id": number, "response": output["prediction"]}
                )
            said = json.loads(checkout.read(name.replace(".json", "_eval_metrics.jsonl")))
            accuracies.append(float(said["accuracy"]))
            model.published[f"dataset:{label}"] = f"{accuracies[-1]:.1f}"
        if accuracies:
            model.published["suite:bbh:all"] = f"{_mean(accuracies):.1f}"
            yield model


_LONGBENCH_CATEGORIES = {
    "single-document questions": "narrativeqa qasper multifieldqa_en multifieldqa_zh",
    "multi-document questions": "hotpotqa 2wikimqa musique dureader",
    "summaries": "gov_report qmsum multi_news vcsum",
    "few-shot learning": "trec triviaqa samsum lsht",
    "synthetic tasks": "passage_count passage_retrieval_en passage_retrieval_zh",
    "code": "lcc repobench-p",
}


def longbench(checkout: Checkout) -> Iterator[Model]:
    """Runs of several models, each with a result.json that the official script wrote."""
    for result in checkout.names("pred"):
        folder, _, file = result.rpartition("/")
        if file != "result.json":
            continue
        figures: dict[str, float] = json.loads(checkout.read(result))
        model = Model(folder.partition("/")[2], ["longbench:all"])
        for task, figure in figures.items():
            label = f"longbench:{task}"
            model.published[f"dataset:{label}"] = f"{figure:.2f}"
            rows = checkout.lines(f"{folder}/{task}.jsonl")
            model.mirror[f"THUDM/LongBench/{task}/test"] = [
                {"context": "", "input": "", "language": "", **row} for row in rows
            ]
            model.predictions += [
                {"dataset": label, "id": number, "response": row["pred"]}
                for number, row in enumerate(rows)
            ]
        means = {
            category: _mean(figures[task] for task in tasks.split())
            for category, tasks in _LONGBENCH_CATEGORIES.items()
            if all(task in figures for task in tasks.split())
        }
        if len(means) == len(_LONGBENCH_CATEGORIES):
            for category, mean in means.items():
                model.published[f"suite:longbench:all/{category}"] = f"{mean:.2f}"
            model.published["suite:longbench:all"] = f"{_mean(means.values()):.2f}"
        yield model


_INFINITEBENCH = {
    "Retrieve.PassKey": "passkey",
    "Retrieve.Number": "number_string",
    "Retrieve.KV": "kv_retrieval",
    "En.Sum": "longbook_sum_eng",
    "En.QA": "longbook_qa_eng",
    "En.MC": "longbook_choice_eng",
    "En.Dia": "longdialogue_qa_eng",
    "Zh.QA": "longbook_qa_chn",
    "Code.Debug": "code_debug",
    "Code.Run": "code_run",
    "Math.Calc": "math_calc",
    "Math.Find": "math_find",
}
_INFINITEBENCH_FOLDERS = {
    "GPT-4": "gpt4",
    "YaRN-Mistral-7B": "yarn-mistral",
    "Kimi-Chat": "kimi",
    "Claude 2": "claude2",
    "Yi-6B-200K": "yi-6b-200k",
    "Yi-34B-200K": "yi-34b-200k",
    "Chatglm3-6B-128K": "chatglm3",
}


def infinitebench(checkout: Checkout) -> Iterator[Model]:
    """The authors' outputs of seven models, and the table of their README."""
    table = _table(checkout.read("README.md").decode(), "Task Name", "GPT-4")
    for title, folder in _INFINITEBENCH_FOLDERS.items():
        model, missing = Model(title, ["infinitebench:all"]), list[str]()
        for task in _INFINITEBENCH.values():
            label = f"infinitebench:{task}"
            try:
                rows = checkout.lines(f"results/{folder}/preds_{task}.jsonl")
            except subprocess.CalledProcessError:
                print(f"{title}: the predictions of {task} are not in this checkout")
                model.datasets = [f"infinitebench:{each}" for each in _INFINITEBENCH.values()]
                missing.append(label)
                continue
            model.mirror[f"xinrongzhang2022/InfiniteBench/{task}"] = [
                {
                    "id": number,
                    "context": "",
                    "input": "",
                    "answer": _listed(_either(row, "ground_truth", "label")),
                    "options": _options(_either(row, "ground_truth", "label"), task),
                }
                for number, row in enumerate(rows)
            ]
            model.predictions += [
                {
                    "dataset": label,
                    "id": number,
                    "response": str(_either(row, "prediction", "pred")),
                }
                for number, row in enumerate(rows)
            ]
        model.datasets = [each for each in model.datasets if each not in missing]
        for name, task in _INFINITEBENCH.items():
            if f"xinrongzhang2022/InfiniteBench/{task}" in model.mirror:
                published = table[name][title].replace("%", "").strip()
                model.published[f"dataset:infinitebench:{task}"] = published
        yield model


def _either(row: Row, *names: str) -> Any:
    return next(row[name] for name in names if name in row)


def _options(truth: Any, task: str) -> list[str]:
    """Return options among which the right one has its letter; the others are not published."""
    if task not in ("longbook_choice_eng", "code_debug"):
        return []
    text, letter = _listed(truth)
    return [text if each == letter else "" for each in "ABCD"]


_MMLU_PRO = {
    "Llama-3-70B": "eval_results/model_outputs_Meta-Llama-3-70B_5shots.zip",
    "Qwen1.5-72B-Chat": "eval_results/model_outputs_Qwen1.5-72B-Chat_5shots.zip",
}
# As the grader guessed in the year of the table.
_MMLU_PRO_FLAGS = [
    *("--only-evaluators", "--evaluator", "multiple-choice"),
    *("--evaluator-option", "multiple-choice.extraction=mmlu-pro-published"),
]


def mmlu_pro(checkout: Checkout) -> Iterator[Model]:
    """The authors' outputs of models that are in the table of their README."""
    table = _table(checkout.read("README.md").decode(), "Model", "Overall Accuracy")
    for title, name in _MMLU_PRO.items():
        archive = zipfile.ZipFile(io.BytesIO(checkout.read(name)))
        rows: list[Row] = json.loads(archive.read(archive.namelist()[0]))
        wanted = ("question_id", "question", "options", "answer", "answer_index", "category")
        yield Model(
            title,
            ["mmlu-pro"],
            {
                "TIGER-Lab/MMLU-Pro/default/test": [
                    {key: row[key] for key in wanted} for row in rows
                ]
            },
            [{"id": row["question_id"], "response": _generated(row)} for row in rows],
            {"mean_score_with_failures": table[title]["Overall Accuracy"].strip()},
            _MMLU_PRO_FLAGS,
        )


def _generated(row: Row) -> str:
    return str(row.get("model_outputs") or row.get("generated_text") or row.get("response") or "")


# Of the paper (Zhou et al. 2023, arXiv:2311.07911): by prompt and by instruction.
_IFEVAL = {
    "mean_score_with_failures": "76.89",
    "ifeval_accuracy_strict": "83.57",
    "mean_score:ifeval_prompt_loose": "79.30",
    "ifeval_accuracy_loose": "85.37",
}


def ifeval(checkout: Checkout) -> Iterator[Model]:
    """The responses of GPT-4, of which the paper has the figures; see docs/protocols.md."""
    folder = "instruction_following_eval/data"
    rows = checkout.lines(f"{folder}/input_data.jsonl")
    keys = {row["prompt"]: row["key"] for row in rows}
    said = checkout.lines(f"{folder}/input_response_data_gpt4_20231107_145030.jsonl")
    yield Model(
        "GPT-4",
        ["ifeval"],
        {"google/IFEval/default/train": rows},
        # The wording of one prompt has changed since.
        [
            {"id": keys.get(row["prompt"], rows[number]["key"]), "response": row["response"]}
            for number, row in enumerate(said)
        ],
        _IFEVAL,
        ["--metric", "mean-score", "--metric", "every-score", "--metric", "ifeval-accuracy"],
        {key: (2, 834 if "accuracy" in key else len(rows)) for key in _IFEVAL},
    )


def _mean(figures: Iterable[float]) -> float:
    found = list(figures)
    return sum(found) / len(found)


def _listed(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _table(text: str, *first: str) -> dict[str, dict[str, str]]:
    """Read the Markdown table that has these as its first titles: cells by line and column."""
    lines = [line.strip().strip("|").split("|") for line in text.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    start = next(place for place, line in enumerate(cells) if line[: len(first)] == [*first])
    titles = cells[start]
    found = {}
    for line in cells[start + 2 :]:
        if len(line) != len(titles):
            break
        found[line[0]] = dict(zip(titles, line, strict=True))
    return found


BENCHMARKS: Mapping[str, Callable[[Checkout], Iterator[Model]]] = {
    "bbh": bbh,
    "longbench": longbench,
    "infinitebench": infinitebench,
    "mmlu-pro": mmlu_pro,
    "ifeval": ifeval,
}


def evaluate(model: Model, cbench: str) -> dict[str, float | None]:
    """Score the predictions of a model by the command line; return the summary."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        for name, rows in model.mirror.items():
            _write(home / "hub" / f"{name}.jsonl", rows)
        _write(home / "predictions.jsonl", model.predictions)
        command = [cbench, "run", "--quiet"]
        for dataset in model.datasets:
            command += ["--dataset", dataset]
        command += ["--predictions", str(home / "predictions.jsonl"), "--name", "published"]
        command += model.flags
        command += ["--data-dir", str(home / "hub"), "--timed-rows", "0", "--output", "json"]
        environment = {**os.environ, "CBENCH_HOME": str(home / "home")}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
        if not done.stdout:
            raise SystemExit(f"{model.name}: cbench run failed")
        run = json.loads(done.stdout)
        if run["state"] != "succeeded":
            raise SystemExit(f"{model.name}: {run['failure']['message']}")
        summary: dict[str, float | None] = run["summary"]["published"]
        return summary


def _write(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def is_equal(published: str, here: float | None, *, is_mean: bool = False) -> bool:
    """Whether a percentage is the published one, as far as that was printed."""
    if here is None:
        return False
    if published.startswith("<"):
        return here * 100 < float(published.lstrip("< "))
    decimals = len(published.partition(".")[2])
    # A figure that ends in 5 may have been rounded either way, and a mean of figures is one of
    # rounded ones.
    slack = 1.0 if is_mean else 0.5
    return abs(here * 100 - float(published)) <= (slack + 1e-6) * 10.0**-decimals


def missed(published: str, here: float, drawn: int, total: int) -> int:
    """Return how many of the drawn verdicts were wrong where the figure was published, or 0."""
    return next((n for n in range(1, drawn + 1) if is_equal(published, here - n / total)), 0)


def main() -> int:
    """Print every figure beside the published one, and how many are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("checkout", type=Path, help="a clone of the repository, bare or not")
    parser.add_argument("--model", help="only models whose name contains this")
    parser.add_argument("--cbench", default=str(Path(sys.executable).with_name("cbench")))
    args = parser.parse_args()
    equal = by_draw = total = 0
    for model in BENCHMARKS[args.benchmark](Checkout(args.checkout)):
        if args.model and args.model not in model.name:
            continue
        summary = evaluate(model, args.cbench)
        for key, published in model.published.items():
            here = summary.get(key)
            is_mean, drawn = key.startswith("suite:"), model.drawn.get(key, (0, 1))
            same = is_equal(published, here, is_mean=is_mean)
            wrong = 0 if same or here is None else missed(published, here, *drawn)
            total, equal, by_draw = total + 1, equal + same, by_draw + (wrong > 0)
            shown = "—" if here is None else f"{here * 100:.2f}"
            name = key.removeprefix("dataset:").removeprefix("suite:")
            mark = "" if same else "  differs"
            if wrong:
                mark += f" by {wrong} of {drawn[0]} verdicts that were drawn at random"
            print(f"{model.name}  {name}  published {published}  here {shown}{mark}", flush=True)
    if not total:
        raise SystemExit(f"{args.checkout} has no predictions of {args.benchmark}")
    rest = f", and {by_draw} but for verdicts drawn at random" if by_draw else ""
    print(f"{equal} of {total} figures are equal{rest}")
    return 0 if equal + by_draw == total else 1


if __name__ == "__main__":
    raise SystemExit(main())
