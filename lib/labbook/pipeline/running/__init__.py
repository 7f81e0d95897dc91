"""Runs of studies: what to measure next, in what time, and where they stand."""
