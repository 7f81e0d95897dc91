"""Time series of what the hosts of a lab use, beside what is measured; nothing of a measurement refers to it."""
