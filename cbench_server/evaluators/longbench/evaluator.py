"""The evaluator: each row by the metric of its task."""

from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.evaluators.longbench.chinese import require_jieba
from cbench_server.evaluators.longbench.metrics import (
    CLASS_TASKS,
    FIRST_LINE_TASKS,
    JIEBA_TASKS,
    METRICS,
    QUICK_TASKS,
)
from cbench_server.types import Example, Placement, Scores


class LongBench(ResponseEvaluator):
    """Gives `longbench_score`: the task's own metric, the best over the references.

    The task is that of the constructor, else the row's field `task`; those of
    LongBench-E may end in `_e`.
    """

    name = "longbench"
    description = "The metric that LongBench has for the row's task, out of nine."
    # jieba takes a second to load, and summaries and code more than linear time.
    placement: Placement = "worker"
    required_fields: tuple[str, ...] = ("answer",)
    score_infos = (ScoreInfo("longbench_score", "What LongBench's metric for the task gives."),)

    def __init__(self, *, task: str | None = None, strip_thinking: bool = True) -> None:
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"task": task, **self.options}
        self._task = None if task is None else _known(task)
        if self._task is None:
            self.required_fields = ("answer", "task")
        elif self._task in JIEBA_TASKS:
            require_jieba(self._task)
        elif self._task in QUICK_TASKS:
            self.placement = "inline"

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        given = self._task or original.get("task")
        if not expected or given is None:
            return {}
        task = _known(str(given))
        if task in JIEBA_TASKS:
            require_jieba(task)
        classes = _classes_of(original) if task in CLASS_TASKS else ()
        response = self.response(processed)
        if task in FIRST_LINE_TASKS:
            response = response.lstrip("\n").partition("\n")[0]
        metric = METRICS[task]
        return {
            "longbench_score": max(metric(response, reference, classes) for reference in expected)
        }


def _known(task: str) -> str:
    name = task.removesuffix("_e")
    if name not in METRICS:
        raise UnknownName("LongBench task", task, METRICS)
    return name


def _classes_of(original: Example) -> list[str]:
    classes = original.get("all_classes")
    if not isinstance(classes, list | tuple):
        raise InvalidInput(
            f"LongBench's classification tasks need the row's labels in all_classes, not "
            f"{classes!r:.100}"
        )
    return [str(each) for each in classes]
