"""The command line, run the way a person runs it."""
