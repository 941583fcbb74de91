"""Notes on models: on how many rows a prompt or an answer was cut, which scores do not show."""

from cbench_server.metrics.model_usage import MARKS
from cbench_server.results import (
    ANSWER_CUT,
    JUDGE_PROMPT_CUT,
    PROMPT_CUT,
    PROMPT_OVER_WINDOW,
    Summary,
)
from cbench_server.spec import Run, RunNote

_SAYS = {
    PROMPT_CUT: "{system}: on {count} of {rows} rows the model did not read the whole prompt: "
    "its endpoint cut it, or refused it as too long. Their scores tell of its window, not of the "
    "system.",
    JUDGE_PROMPT_CUT: "{system}: on {count} of {rows} rows the model of an evaluator did not read "
    "its whole prompt: its endpoint cut it, or refused it as too long. Such a verdict is about a "
    "part.",
    PROMPT_OVER_WINDOW: "{system}: on {count} of {rows} rows prompt and answer do not fit the "
    "model's window together.",
    ANSWER_CUT: "{system}: {count} of {rows} answers ended at the limit of their tokens. Raise it "
    "with {flag}.",
}

# A proxy under test may shorten what it is sent, which is no fault; nobody can tell from outside.
_PROXY_CUT = (
    "{system}: on {count} of {rows} rows the model read far less than was sent, or refused it as "
    "too long: the proxy shortens prompts, or the endpoint behind it cuts them."
)


def model_notes(run: Run, summary: Summary) -> list[RunNote]:
    """Say what was cut, by system."""
    notes = []
    proxies = set(run.config.get("proxies", ())) - set(run.config.get("direct", {}).values())
    for system, values in summary.items():
        rows = run.progress[system].completed if system in run.progress else 0
        for mark, key in MARKS.items():
            if count := int(values.get(key) or 0):
                says = _PROXY_CUT if mark == PROMPT_CUT and system in proxies else _SAYS[mark]
                text = says.format(
                    system=system, count=f"{count:,}", rows=f"{rows:,}", flag=_flag(run, system)
                )
                notes.append(RunNote(mark, text, system))
    return notes


def _flag(run: Run, system: str) -> str:
    """Name the flag that sets how long a model's answers may be."""
    proxies = {ref.name: ref.proxy for ref in run.spec.systems if ref.proxy}
    if (proxy := proxies.get(system)) and proxy.own_limit:
        return f"--option {system}.{proxy.own_limit}=N"
    reader = run.spec.reader
    if system not in proxies and reader is not None and reader.own_limit:
        return f"--reader-option {reader.own_limit}=N"
    return "--max-tokens"
