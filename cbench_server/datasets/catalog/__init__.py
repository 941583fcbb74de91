"""Dataset families: where their rows are, and a mapping from a row to an example."""
