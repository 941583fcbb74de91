"""Suites: configs of a dataset that are run together and published as one figure.

A config says in its protocol which suites it is a part of, and how their figures
are made. `longbench:all` names one, and so does `longbench:*`.
"""

from cbench_server.datasets.record import DatasetRecord
from cbench_server.errors import NotFound

ALL = "all"


def suite_configs(record: DatasetRecord, config: str) -> tuple[str, ...] | None:
    """Return the configs of the suite that a config names; None where it names no suite.

    A config that is called so is that config, and a dataset without configs is
    its own whole. What follows a comma is for each of them.
    """
    asked, comma, settings = config.partition(",")
    name = _suite_name(asked)
    if not name.startswith(ALL) or (settings and record.check_config is None):
        return None
    if name in record.configs:
        return (name,)
    if parts := parts_of(record, name):
        return tuple(f"{part}{comma}{settings}" for part in parts)
    if name == ALL and not record.configs:
        return (settings,)
    if name == ALL or asked.startswith("*"):
        raise NotFound(_no_suite(record, name))
    return None


def parts_of(record: DatasetRecord, suite: str) -> tuple[str, ...]:
    """Name the configs of a suite, in their order, without one that has all their rows."""
    return tuple(
        config
        for config in record.configs
        for aggregate in [record.protocol_of(config).aggregate]
        if aggregate.configs and suite in aggregate.suites and config != suite
    )


def suites_of(record: DatasetRecord) -> dict[str, int]:
    """Return the suites of a dataset, each with the number of its configs."""
    names = dict.fromkeys(
        suite
        for config in record.configs
        for aggregate in [record.protocol_of(config).aggregate]
        if aggregate.configs
        for suite in aggregate.suites
    )
    return {f"{record.name}:{name}": len(parts_of(record, name)) for name in names}


def _suite_name(asked: str) -> str:
    return asked.replace("*", ALL, 1).replace("-", "_")


def _no_suite(record: DatasetRecord, name: str) -> str:
    known = suites_of(record)
    if known:
        return f'dataset "{record.name}" has no suite "{name}"; it has: {", ".join(known)}'
    some = " ".join(f"--dataset {record.name}:{config}" for config in record.configs[:3])
    return (
        f'dataset "{record.name}" has no suite: no figure over all its configs is published. '
        f"Name those to run together, such as {some}"
    )
