"""`cbench-server`, the daemon: its settings, its parts, and the command that runs it."""

from cbench_server.daemon.command import main

__all__ = ["main"]
