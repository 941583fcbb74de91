"""What reaches the disk: files that are whole or not there, and places to be killed at."""
