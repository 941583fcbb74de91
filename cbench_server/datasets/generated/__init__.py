"""Datasets that are made on this machine from a seed, at any length, without a network."""
