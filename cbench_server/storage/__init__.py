"""The store of runs: one SQLite file in the data directory."""
