"""Clocks: limits of time."""
