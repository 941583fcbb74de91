"""The daemon's settings: flags, then CBENCH_* variables, then a TOML file, then defaults."""

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from cbench_server.errors import InvalidInput
from cbench_server.rpc.credentials import Credential
from cbench_server.spec import PriceRef

if TYPE_CHECKING:
    from cbench_server.datasets.record import DatasetRecord
    from cbench_server.rpc.keyring import Keyring

DEFAULT_ADDRESS = "127.0.0.1:50051"


class BadSetting(InvalidInput):
    """A setting has a value that cannot be meant."""

    reason = "BAD_SETTING"


def setting(default: Any, help: str) -> Any:
    """Declare a setting with its default and the sentence `--help` shows."""
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata={"help": help})
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set; each is a flag, a CBENCH_ variable and a key of the file."""

    address: str = setting(
        DEFAULT_ADDRESS, "host:port or unix:/path to listen on; port 0 picks one"
    )
    home: str = setting("", "where runs are kept; by default the user's data directory")
    store: str = setting(
        "",
        "postgresql://USER:PASSWORD@HOST:PORT/NAME, to keep runs in a database that several "
        "daemons may share; prefer CBENCH_STORE, which no list of processes shows",
    )
    lease_seconds: float = setting(
        30.0, "how long after its daemon died another takes a run over, in a shared store"
    )
    data_dir: str = setting("", "folder with a mirror of datasets, asked before the hub")
    tls_cert: str = setting("", "PEM file with the server's certificate chain")
    tls_key: str = setting("", "PEM file with its private key")
    tls_client_ca: str = setting(
        "", "PEM file; clients must show a certificate signed by it (mTLS)"
    )
    token: str = setting("", "bearer token of an admin; prefer token_file or CBENCH_TOKEN")
    token_file: str = setting("", "file of `cbench tokens`, or with one admin's token per line")
    unsafe_allow_remote: bool = setting(
        False, "listen beyond the loopback even without TLS and a token"
    )
    metrics: str = setting("", "host:port at which Prometheus reads metrics; empty means nowhere")
    max_message_mb: int = setting(128, "largest gRPC message, in MB")
    max_runs: int = setting(4, "runs worked on at once")
    max_queued: int = setting(100, "runs waiting for their turn; more are refused")
    max_calls: int = setting(1000, "RPCs served at once; more are refused")
    max_connections: int = setting(1000, "connections held at once; more are closed")
    workers: int = setting(2, "scoring programs for evaluators that run apart")
    engine: str = setting(
        "local", "where evaluators that run apart do so: local, or ray for a Ray cluster"
    )
    ray_address: str = setting(
        "auto", "the Ray cluster: local starts one here, auto joins the one here, or HOST:PORT"
    )
    ray_workers: int = setting(
        0, "scoring programs on the Ray cluster; 0 means one per CPU that it offers"
    )
    sandbox: str = setting(
        "strict", "how programs under test are locked in, at least: strict, best-effort or off"
    )
    dial_allow: list[str] = setting(
        [],
        "the only addresses that runs may have dialled: networks, names, *.NAME and unix:, "
        "with commas; by default all but link-local and metadata addresses",
    )
    dial_deny: list[str] = setting(
        [], "addresses that runs may not have dialled; wins over dial_allow"
    )
    drain_seconds: float = setting(20.0, "how long calls in flight may take after SIGTERM")
    retention_days: float = setting(0.0, "delete finished runs older than this; 0 keeps them")
    retention_runs: int = setting(0, "keep so many finished runs, the newest; 0 keeps all")
    retention_mb: int = setting(
        0, "delete the oldest finished runs while the store is larger, in MB; 0 sets no limit"
    )
    max_store_mb: int = setting(
        0, "the store takes no more runs and rows beyond this size, in MB; 0 sets no limit"
    )
    max_upload_mb: int = setting(0, "largest upload of examples, in MB; 0 sets no limit")
    max_uploads_mb: int = setting(0, "all uploads together, in MB; 0 sets no limit")
    model: str = setting(
        "claude-haiku-4-5-20251001", "the model of proxies and readers named without one"
    )
    log_level: str = setting("info", "debug, info, warning or error")
    log_format: str = setting("json", "json (one line per event) or text")
    imports: list[str] = setting([], "modules to import at start, which register components")
    credentials: dict[str, Any] = setting(
        {}, "file only: [credentials.NAME] env = VARIABLE, prefix = URL or target it may go to"
    )

    data: dict[str, Any] = setting(
        {},
        "file only: [data.NAME] url = where files of examples lie, for `--dataset NAME`; also "
        "options, env, mapping, skip_bad_lines, description",
    )
    prices: dict[str, Any] = setting(
        {},
        'file only: [prices."MODEL"] input_usd = 2.5, output_usd = 10, cached_input_usd = 1.25; '
        "US dollars per million tokens of models for which a run gives no price",
    )

    def price_table(self) -> dict[str, PriceRef]:
        """Read the [prices] of the file."""
        # Imported here so that other settings are read without it.
        from cbench_server.runs.prices import read_prices

        return read_prices(self.prices)

    def named_data(self) -> "list[DatasetRecord]":
        """Read the [data] of the file."""
        if not self.data:
            return []
        # Imported here so that other settings are read without it.
        from cbench_server.datasets.named_data import named_data

        return named_data(self.data)

    def credential_table(self) -> dict[str, Credential]:
        """Read the [credentials] of the file."""
        table = {}
        for name, entry in self.credentials.items():
            if not isinstance(entry, Mapping) or not entry.get("env") or not entry.get("prefix"):
                raise BadSetting(f'credential "{name}" needs both env and prefix.')
            table[name] = Credential(str(entry["env"]), str(entry["prefix"]))
        return table

    def keyring(self) -> "Keyring":
        """Read who may call."""
        # Imported here so that other settings are read without it.
        from cbench_server.rpc.keyring import Keyring

        try:
            return Keyring(self.token, self.token_file, has_certificates=bool(self.tls_client_ca))
        except OSError as error:
            raise BadSetting(
                f"token_file {self.token_file}: {error.strerror}. Make it with: "
                f"cbench tokens create NAME --role admin --token-file {self.token_file}"
            ) from error


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Merge the sources; `flags` holds what the command line gave, `config` among it."""
    path = flags.get("config") or environment.get("CBENCH_CONFIG")
    values: dict[str, Any] = _from_file(Path(path)) if path else {}
    for name in (each.name for each in fields(Settings)):
        if (text := environment.get(f"CBENCH_{name.upper()}")) is not None:
            values[name] = text
    values.update({name: value for name, value in flags.items() if value is not None})
    values.pop("config", None)
    hints = get_type_hints(Settings)
    settings = Settings(
        **{name: _typed(name, value, hints[name]) for name, value in values.items()}
    )
    _check(settings)
    return settings


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadSetting(f"config file {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"config file {path} is not TOML: {error}.") from error
    known = {each.name for each in fields(Settings)}
    for name in values:
        if name not in known:
            raise BadSetting(
                f'config file {path}: no setting "{name}". Known: {", ".join(sorted(known))}.'
            )
    return values


def _typed(name: str, value: Any, kind: Any) -> Any:
    try:
        if kind is bool:
            if isinstance(value, str):
                return {
                    "1": True,
                    "true": True,
                    "yes": True,
                    "0": False,
                    "false": False,
                    "no": False,
                }[value.lower()]
            return bool(value)
        if kind in (int, float):
            number = kind(value)
            if not math.isfinite(number) or (isinstance(value, float) and number != value):
                raise ValueError
            return number
        if kind == list[str]:
            return value.split(",") if isinstance(value, str) else [str(each) for each in value]
        if kind is str:
            return str(value)
        return dict(value)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise BadSetting(f'setting "{name}" cannot be {value!r}.') from error


def _check(settings: Settings) -> None:
    for name in ("max_message_mb", "max_runs", "max_calls", "max_connections", "workers"):
        if getattr(settings, name) < 1:
            raise BadSetting(f'setting "{name}" must be at least 1, not {getattr(settings, name)}.')
    for name in (
        "max_queued",
        "drain_seconds",
        "retention_days",
        "retention_runs",
        "retention_mb",
        "max_store_mb",
        "max_upload_mb",
        "max_uploads_mb",
        "ray_workers",
    ):
        if getattr(settings, name) < 0:
            raise BadSetting(f'setting "{name}" must not be negative.')
    if settings.lease_seconds < 3:
        raise BadSetting('setting "lease_seconds" must be at least 3.')
    choices = {
        "log_level": ("debug", "info", "warning", "error"),
        "log_format": ("json", "text"),
        "sandbox": ("strict", "best-effort", "off"),
        "engine": ("local", "ray"),
    }
    for name, allowed in choices.items():
        if getattr(settings, name) not in allowed:
            raise BadSetting(
                f'setting "{name}" is {getattr(settings, name)!r}; choose {", ".join(allowed)}.'
            )
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise BadSetting("tls_cert and tls_key go together; one is missing.")
    if settings.tls_client_ca and not settings.tls_cert:
        raise BadSetting("tls_client_ca needs tls_cert and tls_key.")


def data_home(settings_home: str = "") -> Path:
    """Return where runs are kept: the setting, CBENCH_HOME, or the user's data directory."""
    chosen = settings_home or os.environ.get("CBENCH_HOME")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("cbench")
