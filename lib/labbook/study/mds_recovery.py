"""A rank's recovery in numbers, from the states seen and the calls that clients made. Pure."""

STATES = ("replay", "resolve", "reconnect", "rejoin", "clientreplay", "active")


def recovery(states, rank: int, killed_s: float) -> dict:
    """`states`: t_s, rank, daemon, state; a row at each change that was seen, epoch.

    detection_s: from the kill until the map no longer has the dead daemon as active in the rank;
    takeover_s: from then until the rank is active; recovery_s: both; replay_s, resolve_s, ... of
    each of STATES but the last. NaN where it did not happen.
    """
    raise NotImplementedError


def through(rows, killed_s: float, active_s: float, *, settle_s: float = 2.0) -> dict:
    """What clients had of it; times in seconds since the rows' zero. `active_s` NaN: never.

    rate_before, rate_during, rate_after (operations that came out, per second), during_over_before
    and after_over_before; longest_blocked_s: the longest call under way at the kill or begun
    between it and active_s; errors, blocked.
    """
    raise NotImplementedError
