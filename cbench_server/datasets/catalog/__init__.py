"""Dataset families: the place of their rows, and a mapping from a row to an example."""
