"""Evaluators that ask a model for its verdict."""
