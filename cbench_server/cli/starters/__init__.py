"""Systems to begin with, one file per language: a program, its test and its run file."""
