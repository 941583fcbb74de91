"""Notes on answer likelihood: what retention means, or why the model cannot tell it."""

from cbench_server.results import Summary
from cbench_server.spec import RunNote

CANNOT_TELL = "LIKELIHOOD_CANNOT_TELL"
RETENTION = "LIKELIHOOD_RETENTION"


def likelihood_notes(summary: Summary) -> list[RunNote]:
    """Say on what the retention of each system stands; one sentence where they are alike."""
    rooms = {
        system: room
        for system, values in summary.items()
        if (room := values.get("likelihood_room")) is not None
    }
    untold = [name for name in rooms if summary[name].get("likelihood_retention") is None]
    notes = []
    if told := [name for name in rooms if name not in untold]:
        notes.append(RunNote(RETENTION, _meaning(summary, told[0])))
    if untold and not told:
        notes.append(RunNote(CANNOT_TELL, _cannot(summary, untold[0])))
    else:
        notes += [RunNote(CANNOT_TELL, _cannot(summary, name), system=name) for name in untold]
    return notes


def _meaning(summary: Summary, system: str) -> str:
    return (
        "Likelihood kept: 0 is no context, 1 the whole of it, which makes the references "
        f"{_room(summary, system)} likelier to this model."
    )


def _cannot(summary: Summary, system: str) -> str:
    return (
        "Likelihood kept: this model cannot tell on this data. The whole context makes the "
        f"references {_room(summary, system)} likelier than none; a retention wants that interval "
        "above 0."
    )


def _room(summary: Summary, system: str) -> str:
    values = summary[system]
    room = values.get("likelihood_room") or 0.0
    low, high = values.get("likelihood_room_ci_low"), values.get("likelihood_room_ci_high")
    count = int(values.get("num_likelihood") or 0)
    rows = f"{count:,} row{'' if count == 1 else 's'}"
    between = "" if low is None or high is None else f"95% CI {low:.2f} to {high:.2f}, "
    return f"{room:.2f} nats per token ({between}{rows})"
