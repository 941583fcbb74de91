"""Runs and rows as text: pure functions, one format a file."""
