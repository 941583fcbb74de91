"""Direct arms: the model behind the proxies of a run, asked without them.

A proxy returns no context, so that only the prompt tokens which it and the
model report tell what it saves. Direct arms are rows of the run like others,
and are never ranked, compared or gated.
"""

from collections.abc import Mapping
from dataclasses import replace

from cbench_server.errors import InvalidSpec
from cbench_server.metrics.protocol import Values
from cbench_server.metrics.reported_compression import (
    Reports,
    read_reports,
    reported_compression,
)
from cbench_server.results import Summary
from cbench_server.runs.run_rows import RunRows
from cbench_server.spec import ModelRef, Run, RunNote, RunSpec, SystemRef

DIRECT = "direct"
UNKNOWN_COMPRESSION = "COMPRESSION_UNKNOWN"


def with_direct_names(spec: RunSpec) -> RunSpec:
    """Name direct arms that have no name: `direct`, or with their model where there are several."""
    arms = [ref for ref in spec.systems if ref.role == DIRECT]

    def named(ref: SystemRef) -> SystemRef:
        if ref.role != DIRECT or ref.name or ref.proxy is None:
            return ref
        return replace(ref, name=DIRECT if len(arms) == 1 else f"{DIRECT}:{ref.proxy.model}")

    return replace(spec, systems=tuple(map(named, spec.systems))) if arms else spec


def check_direct(spec: RunSpec) -> None:
    """Refuse a direct arm that no proxy of the run could be set against."""
    tested = [ref.proxy for ref in spec.systems if ref.proxy is not None and ref.role != DIRECT]
    models: dict[str, ModelRef] = {}
    for place, ref in enumerate(spec.systems):
        if ref.role != DIRECT:
            continue
        field = f"spec.systems[{place}].role"
        if ref.proxy is None:
            raise InvalidSpec(
                "a direct arm is a model behind an OpenAI-compatible endpoint; "
                f'"{ref.name or ref.builtin or ref.target or ref.attached}" is none.',
                field=field,
            )
        asked = ref.proxy.model
        if not tested:
            raise InvalidSpec(
                f"{ref.proxy.base_url} is a direct arm, and this run has no proxy to set against "
                "it. Name one.",
                field=field,
                flags="It is named with --proxy URL.",
            )
        if asked not in {proxy.model for proxy in tested}:
            known = ", ".join(f'"{proxy.model}"' for proxy in tested)
            raise InvalidSpec(
                f'the direct arm asks for the model "{asked}", and no proxy does: they ask for '
                f"{known}. Both must ask for the same.",
                field=field,
            )
        if asked in models:
            raise InvalidSpec(
                f'there are two direct arms for the model "{asked}": {models[asked].base_url} '
                f"and {ref.proxy.base_url}. Leave one out.",
                field=field,
            )
        models[asked] = ref.proxy


def direct_pairs(refs: Mapping[str, SystemRef]) -> dict[str, str]:
    """Return the direct arm of each proxy under test, by their names in the run."""
    arms = {ref.proxy.model: name for name, ref in refs.items() if ref.role == DIRECT and ref.proxy}
    return {
        name: arms[ref.proxy.model]
        for name, ref in refs.items()
        if ref.proxy is not None and ref.role != DIRECT and ref.proxy.model in arms
    }


async def reported_values(store: RunRows, run: Run) -> dict[str, Values]:
    """Return what endpoints report of each proxy that has a direct arm, for the summary."""
    pairs: dict[str, str] = run.config.get("direct", {})
    arms = {name: await _reports(store, run, name) for name in dict.fromkeys(pairs.values())}
    return {
        name: reported_compression(await _reports(store, run, name), arms[arm])
        for name, arm in pairs.items()
    }


async def _reports(store: RunRows, run: Run, system: str) -> Reports:
    found: Reports = {}
    async for page in store.iterate_rows(run.run_id, system):
        found |= read_reports(page)
    return found


def compression_notes(run: Run, summary: Summary) -> list[RunNote]:
    """Say of each system whose compression nothing tells why that is so."""
    proxies = {*run.config.get("proxies", ())}
    notes = []
    for system in run.ranked:
        values, progress = summary.get(system, {}), run.progress.get(system)
        has_rows = progress is not None and progress.completed > progress.failed
        if not has_rows or values.get("context_compression", 0.0) is not None:
            continue
        if run.is_added(system):
            # A control saves what the system does that it was cut to.
            continue
        if values.get("reported_compression") is None:
            why = _why(run, system, is_proxy=system in proxies)
            text = f"{system}: what it saves is unknown. {why}"
            notes.append(RunNote(UNKNOWN_COMPRESSION, text, system))
    return notes


def _why(run: Run, system: str, *, is_proxy: bool) -> str:
    if system in run.config.get("direct", {}):
        return "It or the direct arm reported no prompt tokens on the rows that both answered."
    if is_proxy:
        return (
            "A proxy returns no context: add --direct URL, the same model without the proxy, to "
            "measure it by the prompt tokens that both report."
        )
    if run.spec.kind == "memory":
        return "It answered without handing over what it remembered."
    return "It answered by itself and did not return the context that it read."
