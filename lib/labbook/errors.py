"""Exceptions by cause: the user's input, the place of measurement, or the system under test."""


class LabbookError(Exception):
    """Base class of labbook's exceptions."""


class InputError(LabbookError):
    """The user's input is wrong. The message names the file, the key and the allowed values."""

    def __init__(self, message, *, file=None, key=None, allowed=None):
        self.message, self.file, self.key, self.allowed = message, file, key, allowed
        super().__init__(message)

    def __str__(self):
        place = ": ".join(str(part) for part in (self.file, self.key) if part is not None)
        allowed = "" if self.allowed is None else f" (allowed: {_listed(self.allowed)})"
        return f"{place}: {self.message}{allowed}" if place else f"{self.message}{allowed}"

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message says what to change, and no line of code does."""
        return [f"{type(self).__name__}: {self}"]


class LabError(LabbookError):
    """The machine or a host is at fault, such as an unreachable host or a missing package.

    `remedy`: a sentence on what to do about it.
    """

    def __init__(self, message, *, remedy=None):
        self.message, self.remedy = message, remedy
        super().__init__(message)

    def __str__(self):
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class Lost(LabError):
    """The connection to a host broke; the command in progress may or may not have completed."""


class SystemFailure(LabbookError):
    """The system under test failed. `log`: the end of its log."""

    def __init__(self, message, *, log=None):
        self.message, self.log = message, log
        super().__init__(message)

    def __str__(self):
        return f"{self.message}\n--- end of its log:\n{self.log}" if self.log else self.message


class Stopped(LabbookError):
    """Work stopped early on request: the time limit passed, or only a plan was requested."""


# Classes whose message alone says enough: LabbookError's, and what `labbook run` finds of a notebook.
OWN = {"LabbookError", "InputError", "LabError", "Lost", "SystemFailure", "Stopped", "PointsFailed", "Left",
       "KernelDied", "Incomplete", "NotebookError", "Busy", "Refused", "StuckLabs"}


def in_words(kind: str, message: str) -> str:
    """An error of a class of this name in words: its message, with the class where it is not labbook's own."""
    return message if kind in OWN else f"{kind}: {message}"


def _listed(allowed):
    return allowed if isinstance(allowed, str) else ", ".join(str(a) for a in allowed)
