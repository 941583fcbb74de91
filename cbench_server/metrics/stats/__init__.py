"""Statistics that metrics and comparisons share."""
