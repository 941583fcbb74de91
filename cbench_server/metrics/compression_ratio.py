"""Compression ratio: the share of tokens that a system saves."""

from dataclasses import replace
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class CompressionRatio(FrameMetric):
    """Gives `context_compression`, and the older `compression_ratio` over all strings.

    Both are 1 - tokens out / tokens in, summed over rows that did not fail:
    `context_compression` over the `context` of rows whose system returned one,
    `compression_ratio` over every string of the dicts, a response and copied
    fields included (0.0 where nothing went in).
    """

    name = "compression-ratio"
    description = "Share of tokens a system saves, on the context and on all strings."
    keys = (
        *estimate_keys("context_compression"),
        *estimate_keys("compression_ratio"),
        *estimate_keys("mean_input_tokens"),
        *estimate_keys("mean_output_tokens"),
    )

    def over(self, frame: "Frame") -> Values:
        done = frame.has_answer
        context = frame.ratio(frame.context_out, frame.context_in, frame.has_context, saved=True)
        overall = frame.ratio(frame.output_tokens, frame.input_tokens, done, saved=True)
        if overall.value is None and done.any():
            overall = replace(overall, value=0.0)
        return {
            **context.named("context_compression"),
            **overall.named("compression_ratio"),
            **frame.mean(frame.input_tokens, done).never_negative().named("mean_input_tokens"),
            **frame.mean(frame.output_tokens, done).never_negative().named("mean_output_tokens"),
        }
