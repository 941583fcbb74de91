"""Conclusions on the arms of a run: what they are when it begins, and what they show at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbench_server.results import Summary
from cbench_server.runs.anchor_notes import anchor_notes
from cbench_server.runs.anchors import anchor_arms
from cbench_server.runs.concluded_rows import ConcludedRows
from cbench_server.runs.controls import control_arms, control_notes, missing_controls
from cbench_server.runs.direct import (
    check_direct,
    compression_notes,
    direct_pairs,
    reported_values,
    with_direct_names,
)
from cbench_server.runs.leads import lead_arms, lead_notes
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.sweep import check_sweep, sweep_config, with_whole_arm
from cbench_server.runs.sweep_notes import swept
from cbench_server.spec import Run, RunNote, RunSpec, SystemRef

ADDED_ARMS = (anchor_arms, control_arms, lead_arms)
"""What a run adds by itself once its systems are through, in this order."""


@dataclass(frozen=True)
class Conclusions:
    """What is stored beside the summary."""

    config: dict[str, Any]
    notes: tuple[RunNote, ...]


def with_arms(spec: RunSpec) -> RunSpec:
    """Add the arms that others need, and name those that have no name."""
    return with_direct_names(with_whole_arm(spec))


def check_arms(spec: RunSpec) -> None:
    """Refuse arms that cannot be set against each other."""
    check_direct(spec)
    check_sweep(spec)


def arms_config(refs: Mapping[str, SystemRef], kind: str) -> dict[str, Any]:
    """Record which systems belong together, by their names in the run."""
    proxies = [name for name, ref in refs.items() if ref.proxy is not None]
    found = {
        "proxies": proxies,
        "direct": direct_pairs(refs),
        "sweep": sweep_config(refs, kind),
    }
    return {name: value for name, value in found.items() if value}


async def conclude(store: RunRows, run: Run, summary: Summary) -> Conclusions:
    """Conclude from the stored rows; what belongs to a system is added to its summary."""
    for system, values in (await reported_values(store, run)).items():
        summary.setdefault(system, {}).update(values)
    rows = ConcludedRows(store, run.run_id)
    sweep = await swept(rows, run, summary)
    return Conclusions(
        sweep.config,
        (
            *compression_notes(run, summary),
            *sweep.notes,
            *await control_notes(rows, run),
            *await lead_notes(rows, run),
            *await missing_controls(store, run),
            *await anchor_notes(store, run),
        ),
    )
