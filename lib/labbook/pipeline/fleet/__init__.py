"""A fleet: several machines, each with labs of its own, that measure studies together."""
