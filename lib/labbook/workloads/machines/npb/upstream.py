"""NPB as NASA distributes it, where a user has built it (`make suite` of its MPI version)."""

import re
import shlex
from pathlib import PurePosixPath

from labbook.errors import LabError, SystemFailure

MORE = ("lu", "sp", "bt")
NUMBER = r"\s*=\s*([-+0-9.eE]+)"
TOLD = {"seconds": re.compile("Time in seconds" + NUMBER),
        "mops": re.compile("Mop/s total" + NUMBER)}
VERIFIED = re.compile(r"Verification\s*=\s*(\w+)")


def command(place, programs: str, kernel: str, size: str, ranks: int) -> list[str]:
    """The program in the folder: of any number of ranks (NPB 3.4), or made for this one (before)."""
    names = [str(PurePosixPath(programs) / f"{kernel}.{size}.{end}") for end in ("x", ranks)]
    tests = " || ".join(f"ls {shlex.quote(name)} 2> /dev/null" for name in names)
    found = place.run(tests, check=False).stdout.split("\n")[0]
    if not found:
        raise LabError(f"{place.name}: neither {names[0]} nor {names[1]} is there",
                       remedy=f"In NPB's folder: make {kernel} CLASS={size} NPROCS={ranks}")
    return [found]


def told(said: str, what: str) -> dict:
    """What our own kernels tell in JSON, as far as NPB's report has it, which is to a hundredth of a
    second."""
    found = {name: pattern.search(said) for name, pattern in TOLD.items()}
    verified = VERIFIED.search(said)
    if not verified or not all(found.values()):
        raise SystemFailure(f"{what} made no report", log=said[-2000:])
    seconds = float(found["seconds"][1])
    if seconds == 0:
        raise SystemFailure(f"{what} is too short for NPB to tell its time: take a larger size", log=said[-2000:])
    return {"seconds": seconds, "mops": float(found["mops"][1]), "error": None, "values": [],
            "verified": verified[1] == "SUCCESSFUL", "iterations": [seconds]}
