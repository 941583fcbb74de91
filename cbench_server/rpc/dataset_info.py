"""Infos of datasets, as clients get them."""

from typing import TYPE_CHECKING

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.messages import convert as wire
from cbench_server.registry import Registry

if TYPE_CHECKING:
    from cbench_server.datasets.protocol import DatasetProtocol


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
        _set_protocol(protocol, configs, info.protocols.add())


def _set_protocol(
    protocol: "DatasetProtocol", configs: list[str], message: bench_pb2.DatasetProtocol
) -> None:
    message.configs.extend(configs)
    message.follows = protocol.follows
    message.source = protocol.source
    message.revision = protocol.revision
    message.split = protocol.split
    message.shown.extend(protocol.shown)
    message.withheld.extend(protocol.withheld)
    message.extraction = protocol.extraction
    for ref in protocol.evaluators:
        entry = message.evaluators.add(name=ref.name)
        for key, value in ref.options.items():
            entry.options[key].CopyFrom(wire.value_to_proto(value))
    message.primary_score = protocol.primary_score
    if protocol.worst is not None:
        message.worst = protocol.worst
    message.groups.extend(protocol.groups)
    message.aggregate = str(protocol.aggregate)
    for name, axis in protocol.axes.items():
        message.axes[name].status = axis.status
        message.axes[name].why = axis.why
