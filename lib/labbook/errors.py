"""Errors that say whose fault it is: what you gave, the place, or the system under test."""


class LabbookError(Exception):
    """Root of all errors that labbook raises on purpose."""


class InputError(LabbookError):
    """What you gave is wrong: names the file, the key and what is allowed there."""

    def __init__(self, message, *, file=None, key=None, allowed=None):
        self.message, self.file, self.key, self.allowed = message, file, key, allowed
        super().__init__(message)

    def __str__(self):
        place = ": ".join(str(part) for part in (self.file, self.key) if part is not None)
        allowed = "" if self.allowed is None else f" (allowed: {_listed(self.allowed)})"
        return f"{place}: {self.message}{allowed}" if place else f"{self.message}{allowed}"


class LabError(LabbookError):
    """The place is at fault: an unreachable host, a missing package or kernel feature."""

    def __init__(self, message, *, remedy=None):
        self.message, self.remedy = message, remedy
        super().__init__(message)

    def __str__(self):
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class Lost(LabError):
    """The connection to a host broke: what was under way may or may not have been done."""


class SystemFailure(LabbookError):
    """The system under test failed; `log` is the tail of what it said."""

    def __init__(self, message, *, log=None):
        self.message, self.log = message, log
        super().__init__(message)

    def __str__(self):
        return f"{self.message}\n--- its log ends:\n{self.log}" if self.log else self.message


class Stopped(LabbookError):
    """Work ended before its end on request: the time is up, or only a plan was asked for."""


def _listed(allowed):
    return allowed if isinstance(allowed, str) else ", ".join(str(a) for a in allowed)
