"""Datasets that come inside the package."""
