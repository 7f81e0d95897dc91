"""The ssh provider: labs on the user's own hosts."""
