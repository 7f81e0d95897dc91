"""Published summaries, their verdicts, and the kinds of machines that they are from."""
