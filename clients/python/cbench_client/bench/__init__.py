"""A daemon driven from Python: runs started and followed, rows read."""
