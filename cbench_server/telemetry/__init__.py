"""Telemetry: what a daemon does, for those who watch over it."""
