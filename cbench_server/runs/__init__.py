"""Runs, from spec to stored rows. Start with pipeline.py; docs/architecture.md draws the rest."""
