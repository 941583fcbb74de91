"""LongBench: nine metrics, one for each kind of its tasks."""
