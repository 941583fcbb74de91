"""The library of prompts: for every dataset and config, from the tables in `wordings/`.

A table `[name]` may have `[name.configs.CONFIG]` tables, which replace what
they name. `shape` names a template of `shapes.toml`.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from cbench_server.datasets.prompts.prompt import Prompt
from cbench_server.datasets.prompts.template import digest_of

_FOLDER = resources.files(__package__).joinpath("wordings")
_ANY = "any"
_NOT_WORDINGS = ("shapes.toml", "official.toml")


def prompt_for(dataset: str, config: str = "") -> Prompt:
    """Return the prompt of a dataset; of one that is not known, the prompt for any."""
    table = _wordings().get(dataset)
    if table is None:
        table = _wordings()[_ANY]
    settings = {key: value for key, value in table.items() if key != "configs"}
    settings |= _config_table(table.get("configs", {}), config)
    shape = _read("shapes.toml")[settings.pop("shape", "passage")]
    return Prompt(
        template=settings.pop("template", shape["template"]),
        example=settings.pop("example", shape["example"]),
        stop=tuple(settings.pop("stop", ())),
        **settings,
    )


def known_datasets() -> tuple[str, ...]:
    """Name the datasets with a wording of their own."""
    return tuple(name for name in _wordings() if name != _ANY)


def is_official(dataset: str, config: str, template: str) -> bool:
    """Whether a template is the benchmark's own, as published, by its digest."""
    known = _read("official.toml").get(dataset, {})
    # A dataset without tasks has its digests under the empty config.
    digests = known.get(_task(config), known.get("", ()))
    return digest_of(template) in digests


def official_limit(dataset: str, config: str) -> int | None:
    """Return how many tokens an answer to the benchmark's own prompt may have there, if known."""
    limits: dict[str, int] = _read("official.toml")["limits"].get(dataset, {})
    return limits.get(_task(config))


def _config_table(configs: Mapping[str, Any], config: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = configs.get(config) or configs.get(_task(config), {})
    return table


def _task(config: str) -> str:
    """Return the task of a config: of `vt,length=4000` that is `vt`, of `trec_e` it is `trec`."""
    return config.partition(",")[0].removesuffix("_e")


@cache
def _wordings() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml") and file.name not in _NOT_WORDINGS:
            found |= _read(file.name)
    return found


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(_FOLDER.joinpath(name).read_text(encoding="utf-8"))
