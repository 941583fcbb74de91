"""What writes a run as a file: the reporter of a format, as a client asked for it."""

from functools import partial

from cbench_server.errors import InvalidInput, UnknownName, blaming
from cbench_server.registry import Registry
from cbench_server.reports import WHOLE
from cbench_server.reports.formats import WITH_TEXTS
from cbench_server.reports.inspect_log import to_inspect
from cbench_server.reports.report import Reporter
from cbench_server.spec import Run

INSPECT = "inspect"
"""The format of logs for Inspect AI, which are of one system."""


def reporter_of(
    formats: Registry, run: Run, name: str, *, with_texts: bool = False, system: str = ""
) -> Reporter:
    """Return what writes a run in a format, with texts or of one system if asked for.

    Raises:
        NotFound: There is no such format.
        InvalidInput: The format has no texts or is not of one system, or the run has no such one.
    """
    if with_texts and name not in WITH_TEXTS:
        raise InvalidInput(
            f"only {', '.join(sorted(WITH_TEXTS))} are written with texts, not {name}.",
            field="with_texts",
            flags="Drop --with-texts, or choose one of them with --format.",
        )
    if system and name != INSPECT:
        raise InvalidInput(
            f'only "{INSPECT}" is of one system, not {name}.',
            field="system",
            flags=f"Drop --system, or pass --format {INSPECT}.",
        )
    if name == INSPECT:
        return partial(to_inspect, system=_chosen(run, system))
    with blaming("format"):
        plain = _plain(formats, name)
    return WITH_TEXTS[name] if with_texts else plain


def _plain(formats: Registry, name: str) -> Reporter:
    try:
        plain: Reporter = formats.get("reporter", name)
    except UnknownName:
        known = (*formats.list("reporter"), INSPECT, WHOLE)
        raise UnknownName("reporter", name, known) from None
    return plain


def _chosen(run: Run, system: str) -> str:
    if not system and len(run.systems) == 1:
        return run.systems[0]
    if system not in run.systems:
        what = f'no system "{system}" in this run' if system else "this run has several systems"
        raise InvalidInput(
            f"{what}; the log is of one of: {', '.join(run.systems)}.",
            field="system",
            flags="It is named with --system.",
        )
    return system
