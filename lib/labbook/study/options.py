"""The options of a run, which are environment variables; labbook.study.run.Run lists them."""

import os

PROFILES = ("quick", "full")


def is_set(name: str) -> bool:
    """Whether the variable is there, and neither empty nor 0."""
    return os.environ.get(name, "") not in ("", "0")
