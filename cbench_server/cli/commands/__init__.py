"""The commands of `cbench`, one per file: its flags and what it does."""
