"""Evaluators that try to take the daemon along; a daemon that imports this has them."""

from typing import Any

from cbench_server.registry import register_evaluator


class Interrupts:
    """Raises KeyboardInterrupt where it is put."""

    def __init__(self, name: str, placement: str) -> None:
        self.name, self.placement = name, placement

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise KeyboardInterrupt


class InterruptsLater(Interrupts):
    async def assess(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
        raise KeyboardInterrupt


for placement, kind in (("inline", Interrupts), ("thread", Interrupts), ("io", InterruptsLater)):
    register_evaluator(f"interrupts-{placement}", kind(f"interrupts-{placement}", placement))
