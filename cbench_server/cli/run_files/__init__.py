"""Run files: what flags say, written down; `schema.py` lists all that may stand there."""
