"""What runs on a cluster's hosts beside its daemons: Python's standard library, and librados's."""
