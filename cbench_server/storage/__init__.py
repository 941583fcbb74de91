"""Where runs are kept: one SQLite file in the data directory."""
