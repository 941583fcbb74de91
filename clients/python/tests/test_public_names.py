"""The names the package offers, and that offering them costs nothing."""

import importlib
import pkgutil
import subprocess
import sys

import cbench_client


def test_every_public_name_is_there_and_none_is_hidden_by_a_module() -> None:
    for module in pkgutil.iter_modules(cbench_client.__path__):
        importlib.import_module(f"cbench_client.{module.name}")
    assert cbench_client.__all__ == sorted(cbench_client.__all__)
    for name in cbench_client.__all__:
        assert callable(getattr(cbench_client, name)), name
        assert name in dir(cbench_client)


def test_importing_the_package_does_not_import_grpc() -> None:
    program = "import sys, cbench_client; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(cbench_client, "no_such_name")
