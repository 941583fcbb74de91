"""Rows of published datasets: from a local mirror, else from the hub."""
