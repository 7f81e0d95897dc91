"""Notebooks, their parameters, what their pages depend on, and new ones."""
