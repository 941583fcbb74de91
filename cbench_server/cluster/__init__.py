"""Scoring on other machines: programs of ours on the nodes of a Ray cluster."""
