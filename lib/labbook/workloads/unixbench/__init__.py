"""Twelve tests by the published definitions of UnixBench, in C of our own, and what runs them."""
