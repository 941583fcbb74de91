"""Evaluators made for clients of the daemon, whose operator decides on keys and sandboxes."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from cbench_server.contract import info_of
from cbench_server.errors import InvalidInput, InvalidSpec, entry_of
from cbench_server.models.chat import load_http
from cbench_server.models.dialling import dialling
from cbench_server.registry import Registry
from cbench_server.rpc.credentials import Credentials
from cbench_server.types import Evaluator

_SANDBOXES = ("strict", "best-effort", "off")
"""From the strictest to none."""


class EvaluatorMaker:
    """Makes registered evaluators as a client describes them, within the daemon's own rules."""

    def __init__(
        self, registry: Registry, credentials: Credentials, sandbox: str = _SANDBOXES[0]
    ) -> None:
        self._registry = registry
        self._credentials = credentials
        self._sandbox = sandbox

    async def make(self, name: str, options: Mapping[str, Any]) -> Evaluator:
        """Make one.

        For one that asks a model, the option `credential` names a secret of
        the daemon's configuration, which says where it may be sent; a client
        can neither give a key nor have ours sent to an address of its choice.
        For one that runs programs, a client may ask for a stricter sandbox
        than the daemon's, never for a weaker one.
        """
        kind = self._registry.get("evaluator", name)
        given = dict(options)
        said = info_of(kind)
        if said.runs_programs:
            given["sandbox"] = self._sandbox_for(name, given.get("sandbox", self._sandbox))
        if said.asks_model:
            given["api_key"] = await _key(self._credentials, name, given)
            await asyncio.to_thread(load_http)
        return self._registry.create_evaluator(name, given)

    def _sandbox_for(self, name: str, asked: Any) -> Any:
        if asked in _SANDBOXES and _SANDBOXES.index(asked) > _SANDBOXES.index(self._sandbox):
            raise InvalidInput(
                f'evaluator "{name}" cannot have the sandbox "{asked}": this daemon wants '
                f'"{self._sandbox}" at least. Its operator can start it with --sandbox {asked}.',
                field=entry_of("options", "sandbox"),
            )
        return asked


async def _key(credentials: Credentials, name: str, given: dict[str, Any]) -> str:
    """Return the key to send to the address in `given`, and take its name out of there."""
    if "api_key" in given:
        raise InvalidInput(
            f'evaluator "{name}" takes no "api_key" here, since options are stored; name a '
            'credential of the daemon\'s configuration with the option "credential"',
            field=entry_of("options", "api_key"),
        )
    credential = str(given.pop("credential", None) or "")
    base_url = str(given.get("base_url", ""))
    if host := _host(base_url):
        await dialling().check_host(host)
    # An empty key means none, where None would mean the daemon's own.
    try:
        return credentials.secret(credential, base_url) or ""
    except InvalidSpec as error:
        error.field = entry_of("options", "credential")
        raise


def _host(base_url: str) -> str | None:
    try:
        return urlsplit(base_url).hostname
    except ValueError:
        return None
