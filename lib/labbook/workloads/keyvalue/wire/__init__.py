"""Values of pairs and prepared calls, for the protocols and for the programs on client hosts: only the
standard library and labbook.targets."""
