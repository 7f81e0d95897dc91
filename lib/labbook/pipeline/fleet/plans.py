"""From the execution of a notebook that only plans to jobs for a fleet."""

from labbook.pipeline.fleet.scheduler import Job, Point
from labbook.pipeline.running import totals

DEFAULT_S = 60.0        # of a point of which nothing is known at all


def of_profile(study: str, story, profile: str, chosen: dict | None = None) -> tuple[list[Job], list[tuple]]:
    """As `jobs`. Points of which nothing is known take what totals.point_s says of a run with `chosen` parameters."""
    return jobs(study, story, totals.point_s(study, profile, story.total, chosen))


def jobs(study: str, story, default_s: float | None = None) -> tuple[list[Job], list[tuple]]:
    """(jobs, [(experiment, Point)] that each machine measures for itself) of a RunState whose experiments have
    `hand_out` (see labbook.study.fleet.to_hand_out). default_s: of a point of which nothing is known."""
    found, own = [], []
    for name, one in story.experiments.items():
        handed = one.get("hand_out") or {"read": True, "repeats": []}
        for each in handed["repeats"]:
            points = tuple(_point(point, default_s or DEFAULT_S) for point in each["points"])
            if handed["read"]:
                found.append(Job(study, name, each["repeat"], points))
            else:
                own += [(name, point) for point in points]
    is_incomplete = any(one.get("total", 0) > one.get("done", 0) for one in story.experiments.values())
    if not found and own and is_incomplete:       # nothing but ceilings is left: one machine measures them for the page
        name = own[0][0]
        found.append(Job(study, name, 1, ()))
    return found, own


def _point(point: dict, default_s: float) -> Point:
    seconds = point["point_s"]
    return Point(point["key"], point["setup"], point["setup_s"] or 0.0, default_s if seconds is None else seconds,
                 point["machine"])


def needed(found: list[Job]) -> int:
    """How many points the jobs have to measure."""
    return sum(len(job.left(job.home or "")) for job in found)
