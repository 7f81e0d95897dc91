"""From the execution of a notebook that only plans to jobs for a fleet."""

from labbook.pipeline.fleet.scheduler import Job, Point
from labbook.pipeline.running import totals

DEFAULT_S = 60.0        # of a point of which nothing is known at all


def of_profile(study: str, story, profile: str, chosen: dict | None = None) -> tuple[list[Job], list[tuple]]:
    """As `jobs`. Points of which nothing is known take what totals.point_s says of a run with `chosen` parameters.

    So do those of a profile as it is of which only points with other parameters are known, such as the shorter ones
    of the quick profile: lab.yml has the profile's minutes, set-ups included.
    """
    default_s = totals.point_s(study, profile, story.total, chosen)
    guesses = default_s is None or (chosen is not None and totals.differ(study, profile, chosen))
    return jobs(study, story, default_s, guesses)


def jobs(study: str, story, default_s: float | None = None, guesses: bool = True) -> tuple[list[Job], list[tuple]]:
    """(jobs, [(experiment, Point)] that each machine measures for itself) of a RunState whose experiments have
    `hand_out` (see labbook.study.fleet.to_hand_out). default_s: of a point of which nothing is known. guesses: whether
    something is known of a point where other parameters' times are."""
    found, own = [], []
    for name, one in story.experiments.items():
        handed = one.get("hand_out") or {"read": True, "repeats": []}
        for each in handed["repeats"]:
            points = tuple(_point(point, default_s or DEFAULT_S, guesses) for point in each["points"])
            if handed["read"]:
                found.append(Job(study, name, each["repeat"], points))
            else:
                own += [(name, point) for point in points]
    is_incomplete = any(one.get("total", 0) > one.get("done", 0) for one in story.experiments.values())
    if not found and own and is_incomplete:       # nothing but ceilings is left: one machine measures them for the page
        name = own[0][0]
        found.append(Job(study, name, 1, ()))
    return found, own


def _point(point: dict, default_s: float, guesses: bool) -> Point:
    setup_s, seconds = point["setup_s"] or 0.0, point["point_s"]
    if seconds is None or (point["guessed"] and not guesses):
        setup_s, seconds = 0.0, default_s
    return Point(point["key"], point["setup"], setup_s, seconds, point["machine"])


def needed(found: list[Job]) -> int:
    """How many points the jobs have to measure."""
    return sum(len(job.left(job.home or "")) for job in found)
