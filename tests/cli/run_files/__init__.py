"""Run files: reading, writing, and the way from a file to a spec and back."""
