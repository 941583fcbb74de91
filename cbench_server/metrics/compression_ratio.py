"""How much shorter a system makes things."""

from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute
from cbench_server.results import EvalRow


class CompressionRatio:
    """Gives `context_compression`, and the older `compression_ratio` over all strings.

    Both are 1 - tokens out / tokens in, summed over rows that did not fail:
    `context_compression` over the `context` of rows whose system returned one,
    `compression_ratio` over every string of the dicts, a response and copied
    fields included (0.0 where nothing went in).
    """

    name = "compression-ratio"
    description = "Share of tokens a system saves, on the context and on all strings."
    keys = ("context_compression", "compression_ratio", "mean_input_tokens", "mean_output_tokens")

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _CompressionRatio()


class _CompressionRatio:
    def __init__(self) -> None:
        self._rows = 0
        self._input = 0
        self._output = 0
        self._context_in = 0
        self._context_out = 0

    def add(self, row: EvalRow) -> None:
        if row.failure is not None:
            return
        self._rows += 1
        self._input += row.input_tokens
        self._output += row.output_tokens
        if row.context_tokens_in is not None and row.context_tokens_out is not None:
            self._context_in += row.context_tokens_in
            self._context_out += row.context_tokens_out

    def result(self) -> Values:
        rows = self._rows
        return {
            "context_compression": _saved(self._context_in, self._context_out),
            "compression_ratio": (_saved(self._input, self._output) or 0.0) if rows else None,
            "mean_input_tokens": self._input / rows if rows else None,
            "mean_output_tokens": self._output / rows if rows else None,
        }


def _saved(tokens_in: int, tokens_out: int) -> float | None:
    return 1 - tokens_out / tokens_in if tokens_in else None
