"""Published sets, outcomes of claims, and comparisons of runs."""
