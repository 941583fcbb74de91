"""ROUGE as the rouge-score package computes it: words, subsequences, and the evaluator."""
