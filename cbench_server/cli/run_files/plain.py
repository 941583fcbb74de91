"""Values that a run file can hold, and remarks on those that it cannot."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cbench_server.cli.run_files.reading import is_secret


class Remarks(list[str]):
    """Sentences about what could not be written."""

    def options(self, values: dict[str, Any], whose: str) -> dict[str, Any]:
        """Return options as the keys of an entry: `options`, and `unset` for null."""
        kept, unset = {}, []
        for name, value in values.items():
            if value is None:
                unset.append(name)
            elif is_secret(name) and isinstance(value, str):
                self.append(f"{whose}: the option {name} is a secret and was left out.")
            elif is_expressible(value):
                kept[name] = value
            else:
                self.append(f"{whose}: TOML cannot say the option {name}, which was left out.")
        return {**({"options": kept} if kept else {}), **({"unset": unset} if unset else {})}

    def url(self, text: str, whose: str) -> str:
        """Return an address without a password."""
        try:
            parts = urlsplit(text)
            if parts.password is None:
                return text
        except ValueError:
            return text
        self.append(f"{whose}: the password in its address was left out.")
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def is_expressible(value: Any) -> bool:
    """Whether TOML can say a value: no null and no bytes in it."""
    if isinstance(value, dict):
        secret = any(is_secret(name) and isinstance(each, str) for name, each in value.items())
        return not secret and all(map(is_expressible, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_expressible, value))
    return isinstance(value, bool | int | float | str)
