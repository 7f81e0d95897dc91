"""What drives a system and yields one row per operation."""
