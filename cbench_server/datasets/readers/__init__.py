"""Readers of dataset files, one format each."""
