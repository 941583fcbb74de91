"""Prompts: what models are told besides an example, in words of our own, as data by family."""
