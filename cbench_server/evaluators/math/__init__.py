"""Mathematical answers: found in a solution, and compared."""
