"""A point's record, its provenance, and the fingerprint of the code that measured it."""
