"""Infos of datasets, as clients get them."""

from collections.abc import Mapping
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.messages import convert as wire
from cbench_server.registry import Registry


def set_dataset_info(registry: Registry, name: str, info: bench_pb2.DatasetInfo) -> None:
    """Describe a dataset: what it is, what is here of it, and what its configs measure."""
    record = registry.dataset(name)
    info.name = name
    info.description = record.description
    info.embedded = record.embedded
    info.available = record.is_available(registry.data_dir)
    info.evaluators.extend(record.evaluators)
    info.reference_fields.extend(record.reference_fields)
    info.family = record.family
    info.configs.extend(record.configs)
    if record.size is not None:
        info.size = record.size
    info.primary_score = record.primary_score
    info.official_metric = record.official
    info.licence = record.licence
    info.source = f"{record.source}@{record.revision}" if record.revision else record.source
    info.citation = record.citation
    if record.hub is not None:
        info.split_here = record.hub.split_here(record.default_config, registry.data_dir)
    for protocol, configs in record.protocols():
        _set_protocol(protocol.describe(), configs, info.protocols.add())


def _set_protocol(
    said: Mapping[str, Any], configs: list[str], message: bench_pb2.DatasetProtocol
) -> None:
    message.configs.extend(configs)
    for name in ("follows", "source", "revision", "split", "extraction", "primary_score"):
        setattr(message, name, said[name])
    message.aggregate = said["aggregate"]
    message.shown.extend(said["shown"])
    message.withheld.extend(said["withheld"])
    message.groups.extend(said["groups"])
    if said["worst"] is not None:
        message.worst = said["worst"]
    for evaluator in said["evaluators"]:
        entry = message.evaluators.add(name=evaluator["name"])
        for key, value in evaluator["options"].items():
            entry.options[key].CopyFrom(wire.value_to_proto(value))
    for name, axis in said["axes"].items():
        message.axes[name].status = axis["status"]
        message.axes[name].why = axis["why"]
