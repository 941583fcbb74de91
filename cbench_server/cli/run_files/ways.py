"""Keys of a system that mean something only for some ways of finding one."""

from collections.abc import Iterator, Mapping
from typing import Any

from cbench_server.cli.run_files.schema import WAYS

ONLY_WITH = {
    "served_name": ("target",),
    "replicas": ("launch",),
    "resources": ("launch",),
    "only": ("launch",),
    "credential": ("target", "proxy"),
    "tls": ("target",),
    "ca": ("target",),
    "ca_pem": ("target",),
    "server_name": ("target",),
    "folder": ("launch", "exec"),
    "mode": ("exec",),
    "concurrency": ("exec", "http"),
    "batch": ("http",),
    "token_env": ("http",),
    "timeout": ("http", "proxy"),
    "model": ("proxy",),
    "system_prompt": ("proxy",),
    "workers": ("proxy",),
    "context_window": ("proxy",),
    "price": ("proxy",),
}


def out_of_place(entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str], str]]:
    """Yield the keys of a system that nothing would heed, with what is wrong with each."""
    given = [way for way in WAYS if way in entry]
    for key, ways in ONLY_WITH.items():
        if key in entry and len(given) == 1 and given[0] not in ways:
            needed = " or ".join(f"`{way}`" for way in ways)
            yield (key,), f"is for {needed}, and this system has `{given[0]}`."
