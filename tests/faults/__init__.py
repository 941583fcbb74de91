"""Faults, with real processes and real signals: what a run's life promises in spite of them."""
