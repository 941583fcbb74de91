"""Nothing that Linux alone has is needed to evaluate: a run without what macOS lacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# What CPython offers on Linux and not on macOS, as far as a program like ours might use it.
MACOS = """
import os, resource, select, signal, socket, sys

sys.platform = "darwin"
missing = {
    os: "sched_getaffinity sched_setaffinity memfd_create pidfd_open eventfd getrandom pipe2 "
    "posix_fallocate posix_fadvise fdatasync splice copy_file_range setresuid setresgid O_TMPFILE "
    "O_PATH O_DIRECT getxattr setxattr P_PIDFD unshare setns",
    select: "epoll",
    signal: "pidfd_send_signal",
    socket: "SO_PEERCRED SO_DOMAIN SO_PROTOCOL TCP_USER_TIMEOUT SOCK_CLOEXEC SOCK_NONBLOCK",
    resource: "prlimit RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_SIGPENDING RLIMIT_MSGQUEUE",
}
for module, names in missing.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
PROXIES = "def _get_proxy_settings():\n    return {}\n\n\n_get_proxies = _get_proxy_settings\n"


@pytest.mark.timeout(300)  # it imports everything anew, and a machine may be busy
def test_a_run_needs_nothing_that_linux_alone_has(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(MACOS)
    (tmp_path / "_scproxy.py").write_text(PROXIES)  # a module of macOS that urllib imports there
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CBENCH_")}
    environment = {**kept, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "user")}
    command = [sys.executable, "-m", "cbench_server"]
    run = ["run", "--builtin", "truncate-head", "--dataset", "mini-qa", "-n", "3"]
    done = subprocess.run(
        [*command, *run, "--output", "json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 3
    assert (tmp_path / "user" / "Library" / "Application Support" / "cbench" / "cbench.db").exists()
