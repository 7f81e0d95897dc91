"""Colour of verdicts, findings and errors, on a terminal alone.

There is none where output is piped or TERM is `dumb`, nor where NO_COLOR is set (https://no-color.org).
No colour says what a word does not.
"""

import os
import re

GREEN, RED, YELLOW, FAINT = 32, 31, 33, 2
WORDS = {"not replicated": RED, "replicated": GREEN, "open": YELLOW, "not testable here": FAINT, "not run": FAINT,
         "not judged yet": FAINT, "MISSING": RED, "failed": RED, "out of date": YELLOW}


def is_wanted(stream) -> bool:
    """Whether a stream gets colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, code: int, stream) -> str:
    """The text in a colour, if the stream gets any."""
    return f"\033[{code}m{text}\033[0m" if is_wanted(stream) else text


def words(text: str, stream) -> str:
    """The text with its verdicts and states in their colours; not where they are part of a longer name."""
    each = "|".join(map(re.escape, WORDS))     # the longer one of two that begin alike is first
    return re.sub(rf"(?<![\w-])(?:{each})(?![\w-])", lambda found: paint(found[0], WORDS[found[0]], stream), text)
