"""Logs that Inspect AI reads: one system of a run as an evaluation, its rows as samples."""

from collections.abc import Collection, Iterator
from typing import Any

from cbench_server.reports.json_report import iso_time
from cbench_server.reports.judges import MARK, figure_of, marked_figures, marked_scores
from cbench_server.reports.report import FullRow, Original, Report
from cbench_server.reports.row_texts import as_text
from cbench_server.results import EvalRow, strict_json
from cbench_server.spec import Run, RunState

_VERSION = 2  # of the log format
_UNPROVEN = {"metadata": {"mark": MARK, "why": "its judge did not pass its controls"}}
_STATUS = {RunState.SUCCEEDED: "success", RunState.CANCELLED: "cancelled", RunState.FAILED: "error"}


def to_inspect(report: Report, system: str) -> Iterator[str]:
    """Write the log of one system, sample by sample.

    Rows, failed ones with their error, are samples; repeats are epochs; scores are scores.
    """
    run = report.run
    unproven = marked_scores(run)
    head = {
        "version": _VERSION,
        "status": _STATUS.get(run.state, "started"),
        "eval": _spec(run, system, _ids(report, system)),
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(run, system),
        "stats": _stats(run, system),
    }
    if run.failure is not None and run.state is RunState.FAILED:
        message = run.failure.message
        head["error"] = {"message": message, "traceback": message, "traceback_ansi": message}
    yield strict_json(head, indent=None)[:-1] + ', "samples": ['
    comma = ""
    for row, original in report.full_rows(system):
        yield comma + strict_json(_sample((row, original), unproven), indent=None)
        comma = ",\n"
    yield "]}\n"


def _ids(report: Report, system: str) -> list[int | str]:
    """Return the ids of its samples, which the viewer wants to know before it reads them."""
    found = (_id(row) for row in report.rows() if row.system == system)
    return list(dict.fromkeys(found))


def _id(row: EvalRow) -> int | str:
    return row.example_id if isinstance(row.example_id, int) else str(row.example_id)


def _spec(run: Run, system: str, ids: list[int | str]) -> dict[str, Any]:
    datasets = [each.name for each in run.spec.datasets]
    return {
        "run_id": run.run_id,
        "eval_id": f"{run.run_id}-{system}",
        "task_id": f"{run.run_id}-{system}",
        "created": iso_time(run.create_time),
        "task": "+".join(datasets) or "cbench",
        "dataset": {"name": ", ".join(datasets), "samples": len(ids), "sample_ids": ids},
        "model": f"cbench/{system}",
        "config": {"epochs": run.spec.repeats},
        "packages": {"cbench-server": run.config.get("cbench_version", "")},
        "metadata": {"system": system, "labels": dict(run.spec.labels)},
    }


def _results(run: Run, system: str) -> dict[str, Any]:
    progress = run.progress.get(system)
    values = run.summary.get(system, {})
    unproven = marked_figures(run)
    metrics = {
        name: {"name": name, "value": value, **(_UNPROVEN if figure_of(name) in unproven else {})}
        for name, value in sorted(values.items())
        if value is not None
    }
    done = progress.completed if progress else 0
    return {
        "total_samples": done,
        "completed_samples": done - (progress.failed if progress else 0),
        "scores": [{"name": "cbench", "scorer": "cbench", "params": {}, "metrics": metrics}],
    }


def _stats(run: Run, system: str) -> dict[str, Any]:
    ended = run.create_time if run.end_time is None else run.end_time
    return {
        "started_at": iso_time(run.create_time),
        "completed_at": iso_time(ended),
        "model_usage": {},
    }


def _sample(full: FullRow, unproven: Collection[str]) -> dict[str, Any]:
    row, original = full
    fields = original or {}
    asked = as_text(fields.get("question")) or as_text(fields.get("context")) or ""
    said = as_text((row.processed or {}).get("response")) or ""
    sample: dict[str, Any] = {
        "id": _id(row),
        "epoch": row.repeat + 1,
        "input": asked,
        "target": _target(fields),
        "messages": [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": said, "source": "generate"},
        ],
        "output": {
            "model": f"cbench/{row.system}",
            "choices": [{"message": {"role": "assistant", "content": said}, "stop_reason": "stop"}],
        },
        "scores": _scores(row, said, unproven),
        "metadata": _metadata(row, fields),
        "total_time": row.latency,
    }
    if row.failure is not None:
        told = f"{row.failure.reason}: {row.failure.message}"
        sample["error"] = {"message": told, "traceback": told, "traceback_ansi": told}
    return sample


def _target(fields: Original) -> str | list[str]:
    answers = fields.get("answers") or fields.get("answer")
    if isinstance(answers, list | tuple):
        return [as_text(each) or "" for each in answers]
    return as_text(answers) or ""


def _scores(row: EvalRow, said: str, unproven: Collection[str]) -> dict[str, Any]:
    return {
        name: {"value": value, "answer": said, **(_UNPROVEN if name in unproven else {})}
        for name, value in row.scores.items()
    }


def _metadata(row: EvalRow, fields: Original) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "primary_score": row.primary_score,
        "context": as_text(fields.get("context")),
        "processed_context": as_text((row.processed or {}).get("context")),
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "marks": list(row.marks),
    }
