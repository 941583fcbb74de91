"""Making evaluators for clients of the daemon: those that ask a model get their key from us."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from cbench_server.credentials import Credentials
from cbench_server.dialling import check_dialable
from cbench_server.errors import InvalidInput
from cbench_server.registry import Registry
from cbench_server.types import Evaluator


def asks_model(registry: Registry, name: str) -> bool:
    """Whether the evaluator of that name sends its pairs to a model that its options name."""
    return bool(getattr(registry.get("evaluator", name), "asks_model", False))


async def make_evaluator(
    registry: Registry, credentials: Credentials, name: str, options: Mapping[str, Any]
) -> Evaluator:
    """Make a registered evaluator as a client describes it.

    For one that asks a model, the option `credential` names a secret of the
    daemon's configuration, which says where it may be sent; a client can
    neither give a key nor have ours sent to an address of its choice.
    """
    if not asks_model(registry, name):
        return registry.create_evaluator(name, options)
    given = dict(options)
    if "api_key" in given:
        raise InvalidInput(
            f'evaluator "{name}" takes no "api_key" here, since options are stored; name a '
            'credential of the daemon\'s configuration with the option "credential"'
        )
    credential = str(given.pop("credential", None) or "")
    base_url = str(given.get("base_url", ""))
    if host := _host(base_url):
        await check_dialable(host)
    # An empty key means none, where None would mean the daemon's own.
    given["api_key"] = credentials.secret(credential, base_url) or ""
    return registry.create_evaluator(name, given)


def _host(base_url: str) -> str | None:
    try:
        return urlsplit(base_url).hostname
    except ValueError:
        return None
