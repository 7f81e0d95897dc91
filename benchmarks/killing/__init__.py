"""Parts of `benchmarks/kills.py`."""
