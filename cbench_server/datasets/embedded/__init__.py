"""Datasets that come with the package."""
