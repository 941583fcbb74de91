"""The level of a system that has replicas: each climbs by itself, and their sum is the limit."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_server.systems.replicas import Replicas


class SharedLevel:
    """Stands where a system without replicas has its Climb.

    Replicas count for each of them as answers come, so there is nothing left to learn here.
    """

    halvings = 0

    def __init__(self, replicas: "Replicas") -> None:
        self._replicas = replicas

    @property
    def limit(self) -> int:
        """Calls that may be at work now."""
        return self._replicas.limit

    def count(self, calls: int, *, is_full: bool) -> None:
        """Do nothing: the replica that answered has climbed."""

    def halve(self, halvings: int) -> None:
        """Do nothing: the replica that was full has stepped back."""

    def begin_at(self, limit: int) -> None:
        """Let each replica begin higher up."""
        self._replicas.begin_wide()
