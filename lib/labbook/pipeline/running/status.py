"""The state of every notebook's page: build/status.json, `labbook status`, the status page."""

import datetime
import json
import time

from labbook import paths
from labbook.errors import LabbookError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.progress import RunState, beside, duration
from labbook.pipeline.sources import keys, notebooks, parameters

NEVER, OLD, RUNNING = "never run", "out of date", "running"
FIELDS = ("study", "state", "profile", "started", "seconds", "points", "environment", "machine",
          "commit", "published", "error", "seconds_left", "board", "lab_time", "why")


def rows() -> list[dict]:
    """One dict a study with FIELDS; state: one of pages' states, out of date, never run, running. why: of a
    page that is out of date, what of its parts changed, in words.
    For a running study and for a run that did not finish, all but environment, machine, commit and published are of
    that run."""
    return [_row(study) for study in notebooks.studies()]


def _row(study: str) -> dict:
    note = pages.note(study)
    row = {field: note.get(field) for field in FIELDS}
    row |= {"study": study, "why": []}
    if "stopped" in note:
        row |= {**dict.fromkeys(("profile", "error", "board", "lab_time")), **note["stopped"]}
    elif not note:
        row["state"] = NEVER
    elif note["state"] == pages.OK and not _today(study, note):
        row |= {"state": OLD, "why": _changed(study, note)}
    return row | _run_of(study) if pages.is_running(study) else row


def _run_of(study: str) -> dict:
    """Fields of a run that is under way."""
    story = RunState(beside(pages.partial(study)))
    story.read_on()
    at_s = story.began_at_s or time.time()
    began = datetime.datetime.fromtimestamp(at_s).astimezone()
    return {"state": RUNNING, "profile": story.begun.get("profile"), "error": None,
            "points": story.points(), "board": story.board or None, "lab_time": story.lab_time(), "why": [],
            "seconds": round(time.time() - at_s, 1),
            "seconds_left": story.seconds_left(), "started": began.isoformat(timespec="seconds")}


def _today(study: str, note: dict) -> bool:
    try:
        key = keys.page_key(study, note["parameters"], note["published"])
    except LabbookError:
        return False  # its parameters cell cannot be read any more
    return pages.is_current(study, key)


def _changed(study: str, note: dict) -> list[str]:
    """What a page was made from that is not as it was; of a page of an earlier version only the records."""
    try:
        now = {**keys.parts(study, note["parameters"]), "records": keys.records(study, note["published"])}
    except LabbookError:
        return ["the parameters"]
    then = {**note.get("parts", {}), "records": (note.get("key") or {}).get("records")}
    return [name for name, digest in now.items() if name in then and then[name] != digest]


def write() -> list[dict]:
    """Write build/status.json; its rows."""
    current = rows()
    pages.write_atomically(paths.build_dir() / "status.json",
                           json.dumps(current, indent=1, ensure_ascii=False) + "\n")
    return current


FLEET_S = 10        # after which what a fleet's driver wrote is of one that has ended


def write_fleet(place: str, machines: list[dict], seconds_left: float | None) -> None:
    """Write build/fleet.json: what a fleet does now."""
    pages.write_atomically(paths.build_dir() / "fleet.json", json.dumps(
        {"fleet": place, "at_s": time.time(), "seconds_left": seconds_left, "machines": machines}) + "\n")


def fleet() -> dict | None:
    """What a fleet does that this checkout drives now, None without one."""
    try:
        found = json.loads((paths.build_dir() / "fleet.json").read_text())
        return found if time.time() - found["at_s"] < FLEET_S else None
    except (OSError, ValueError, KeyError):
        return None


def fleet_table(found: dict) -> str:
    """For a terminal: a line a machine."""
    left = f", about {duration(found['seconds_left'])} left" if found["seconds_left"] is not None else ""
    lines = [(one["machine"], one["state"], one["job"] or "", f"{one['done']}/{one['total']}" if one["total"] else "",
              f"{one['points']} points measured") for one in found["machines"]]
    return f"{found['fleet']}{left}\n" + aligned([("machine", "state", "measures", "points", "in all"), *lines])


def table(found: list[dict]) -> str:
    """For a terminal: one line a study."""
    lines = [("study", "state", "profile", "claims", "points", "took", "when")]
    for row in found:
        counted = row["points"] or {}
        board = row["board"]
        lines.append((row["study"], state_words(row), row["profile"] or "",
                      f"{board['decided']}/{board['asked']} decided" if board else "",
                      f"{counted['done']}/{counted['total']}" if counted.get("total") else "",
                      _took(row),
                      (row["started"] or "")[:16].replace("T", " ")))
    return aligned(lines)


def lab_time_words(row: dict) -> str | None:
    """How much of a run's lab time was measuring, in words; None of a run that measured nothing."""
    found = row.get("lab_time") or {}
    if not found.get("points_s"):
        return None
    measuring = found["points_s"] - found["set_up_s"]
    return (f"measuring took {duration(measuring)} of the lab's {duration(found['points_s'])} "
            f"({measuring / found['points_s']:.0%}), set-ups the rest")


def state_words(row: dict) -> str:
    """A state in words: "killed after 7 of 24 points"."""
    counted = row["points"] or {}
    stopped = row["state"] in pages.STOPPED and counted.get("total")
    if row["state"] == OLD and row.get("why"):
        return f"{OLD}: {', '.join(row['why'])} changed"
    return f"{row['state']} after {counted['done']} of {counted['total']} points" if stopped else row["state"]


def _took(row: dict) -> str:
    left = f", about {duration(row['seconds_left'])} left" if row["seconds_left"] else ""
    return duration(row["seconds"]) + left if row["seconds"] else ""


def aligned(lines) -> str:
    widths = [max(len(str(cell)) for cell in column) for column in zip(*lines)]
    return "\n".join("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)).rstrip()
                     for line in lines)


def machine_words(machine: dict | None) -> str:
    """A machine in one line."""
    if not machine:
        return "unknown"
    return (f"{machine['cores']} × {machine['cpu']}, {machine['memory_gib']} GiB, "
            f"Linux {machine['kernel']}")
