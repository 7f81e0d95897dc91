"""Labs on hosts of the user's own, reached over SSH."""
