"""Compression ratio: the share of tokens that a system saves."""

from array import array
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import UNKNOWN, Extra
from cbench_server.metrics.stats.estimate import estimate_keys
from cbench_server.results import EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


def _reader_prompt(row: EvalRow) -> int:
    tokens = (row.reader_usage or {}).get("prompt_tokens")
    return tokens if isinstance(tokens, int) and row.failure is None else UNKNOWN


_READER_PROMPT = Extra(_reader_prompt, partial(array, "q"))


class CompressionRatio(FrameMetric):
    """Gives `context_compression`, and the older `compression_ratio` over all strings.

    Both are 1 - tokens out / tokens in, summed over rows that did not fail:
    `context_compression` over the `context` of rows that tell what the system
    left of it, `compression_ratio` over every string of the dicts, a response
    and copied fields included (0.0 where nothing went in).
    `mean_context_tokens_in` and `..._out` are over the rows of
    `context_compression`, so that each follows from the others.
    `mean_reader_prompt_tokens` is what the reader's endpoint counted.
    """

    name = "compression-ratio"
    description = "Share of tokens a system saves, on the context and on all strings."
    keys = (
        *estimate_keys("context_compression"),
        "mean_context_tokens_in",
        "mean_context_tokens_out",
        "mean_reader_prompt_tokens",
        *estimate_keys("compression_ratio"),
        *estimate_keys("mean_input_tokens"),
        *estimate_keys("mean_output_tokens"),
    )

    extras = (_READER_PROMPT,)

    def over(self, frame: "Frame") -> Values:
        done = frame.has_answer
        context = frame.ratio(frame.context_out, frame.context_in, frame.has_context, saved=True)
        prompt = frame.extra(_READER_PROMPT)
        overall = frame.ratio(frame.output_tokens, frame.input_tokens, done, saved=True)
        if overall.value is None and done.any():
            overall = replace(overall, value=0.0)
        return {
            **context.named("context_compression"),
            "mean_context_tokens_in": frame.mean(frame.context_in, frame.has_context).value,
            "mean_context_tokens_out": frame.mean(frame.context_out, frame.has_context).value,
            "mean_reader_prompt_tokens": frame.mean(prompt, prompt != UNKNOWN).value,
            **overall.named("compression_ratio"),
            **frame.mean(frame.input_tokens, done).never_negative().named("mean_input_tokens"),
            **frame.mean(frame.output_tokens, done).never_negative().named("mean_output_tokens"),
        }
