"""Scoring: evaluators run on the event loop, in threads, or in worker programs."""
