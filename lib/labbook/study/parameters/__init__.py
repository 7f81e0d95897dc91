"""A notebook as a file, its parameters, and their checks."""
