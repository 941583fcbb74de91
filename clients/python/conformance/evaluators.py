"""The evaluators that PROGRAM.md describes."""

from typing import Any

from probe import conformance_panic, hold

from cbench_client import RemoteFailure, current_call

Fields = dict[str, Any]


class Score:
    """Scores as it is told."""

    name, version, max_concurrency = "conformance-score", "1.0", 16
    scores = {"exact": "Whether the response is the answer.", "distance": "How far it is."}  # noqa: RUF012 - never changed
    lower_is_better = ("distance",)
    worst = {"distance": 100.0}  # noqa: RUF012 - never changed
    required_fields = ("answer",)

    async def score(self, original: Fields, processed: Fields, options: Fields) -> Fields:
        match processed.get("command"):
            case "scores":
                return {"scores": processed["scores"]}
            case "fail":
                raise RemoteFailure(
                    processed["message"], origin="evaluator", reason=processed["reason"]
                )
            case "error":
                raise ValueError(processed["message"])
            case "panic":
                conformance_panic(processed["message"])
            case "hold":
                await hold(processed["key"])
                return {"scores": {"exact": 1}}
        return _compared(original, processed, options)


def _compared(original: Fields, processed: Fields, options: Fields) -> Fields:
    details: Fields = {"options": options, **current_call().trace_headers}
    if "value" in processed:
        details["value"] = processed["value"]
    if "id" in original:
        details["original_id"] = original["id"]
    if "answer" not in original:
        return {"scores": {}, "details": details}
    exact = float(processed.get("response") == original["answer"])
    return {"scores": {"exact": exact}, "explanation": "compared", "details": details}


class Plain:
    """Takes no options."""

    name, version = "conformance-plain", "1.0"
    scores = {"one": "Always one."}  # noqa: RUF012 - never changed

    def score(self, original: Fields, processed: Fields) -> Fields:
        return {"one": 1.0}


EVALUATORS = [Score(), Plain()]
