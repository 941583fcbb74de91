"""Config of a run that is about to begin: all that is known once everything it names is open."""

from typing import Any

from cbench_server.registry import Registry
from cbench_server.runs.conclusions import arms_config
from cbench_server.runs.config import describe_config, describe_prompts
from cbench_server.runs.connections import Connections
from cbench_server.runs.grouping import described_figure
from cbench_server.runs.served_models import served_models
from cbench_server.runs.suites import suites_in
from cbench_server.spec import RunSpec


def opened_config(spec: RunSpec, opened: Connections, registry: Registry) -> dict[str, Any]:
    """Describe what a run has opened."""
    config = describe_config(spec, opened.callers, opened.datasets, opened.plans, opened.prompts)
    if opened.told:
        config["prompts"] = describe_prompts(opened.prompts, opened.told)
    config |= arms_config(opened.refs, spec.kind)
    config["identities"] = opened.identities
    if models := served_models(spec.labels):
        config["local_models"] = models
    if opened.roles:
        config["roles"] = opened.roles
    if suites := suites_in(spec.datasets, registry):
        config["suites"] = [suite.describe() for suite in suites]
    return config | described_figure(spec, registry)
