"""Run functions of labbook as root on a user's host, by `sudo`.

The modules that they need are sent in one archive, on standard input: on the host it is never a file
that anybody could swap before root reads it. They import the standard library and one another only, so
that the host's own Python runs them; a contract in pyproject.toml checks that.
"""

import base64
import io
import json
import shlex
import zipfile
from functools import cache
from pathlib import Path

from labbook.errors import LabError

LIB = Path(__file__).resolve().parents[3]
MODULES = ("labbook", "labbook.syncing", "labbook.lab", "labbook.lab.journal",
           "labbook.lab.disk", "labbook.lab.disk.loop_device", "labbook.lab.disk.making",
           "labbook.lab.disk.modelled", "labbook.lab.disk.tracefs",
           "labbook.lab.deadline", "labbook.lab.host", "labbook.lab.host.fuse",
           "labbook.lab.local", "labbook.lab.local.cgroups", "labbook.lab.local.freezer", "labbook.lab.kernel",
           "labbook.lab.local.layout",
           "labbook.lab.locks",
           "labbook.lab.local.sandbox", "labbook.lab.local.unmake",
           "labbook.lab.remote", "labbook.lab.remote.root")
# A file in the lab's folder until it is taken down. Commands of a killed driver may still run or
# arrive late: without it they make nothing more, and those that run are waited for. A full disk takes no
# new file, but gives one up.
STAYS = "stays-up"
SECONDS = 120
ALONE_SECONDS = 50      # for other commands of the lab on this host to end; less than any command's time
WORKS = "another command of the lab still works there: try again"
GOES_DOWN = "the lab is being taken down"
MAIN = """import fcntl, importlib, json, os, subprocess, sys, time
folder, (module, function, arguments) = sys.argv[1], json.loads(sys.argv[2])
alone, until = os.open(folder, os.O_RDONLY), time.monotonic() + SECONDS
while True:
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        if time.monotonic() > until:
            sys.exit(f"another command works in {folder}, and does not end")
        time.sleep(0.05)
if function.startswith("make") and not os.path.exists(f"{folder}/{STAYS}"):
    sys.exit(GOES_DOWN)
os.umask(0o022)
os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
try:
    answer = getattr(importlib.import_module(module), function)(**arguments)
except (OSError, ValueError, subprocess.SubprocessError) as error:
    answer = {"error": str(error)}
json.dump(answer, sys.stdout)
"""

# Runs an archive from memory; zipimport takes a path.
RECEIVE = """import base64, os, runpy, sys
archive = os.memfd_create("labbook")
with open(archive, "wb", closefd=False) as file: file.write(base64.b64decode(sys.stdin.buffer.read()))
runpy.run_path(f"/proc/self/fd/{archive}", run_name="__main__")"""


def going_down(lab: str) -> str:
    """A shell command that stops all making in a lab's folder and waits for what is in progress."""
    return f"[ ! -d {lab} ] || {{ rm -f {lab}/{STAYS} && {{ flock -w {ALONE_SECONDS} {lab} true{_or_say(WORKS)}; }}; }}"


def unless_going_down(lab: str) -> list[str]:
    """Shell commands (`set -e`) to put before others that make something; see going_down."""
    return [f"exec 9< {lab}", f"flock -w {ALONE_SECONDS} 9{_or_say(WORKS)}",
            f"[ -e {lab}/{STAYS} ]{_or_say(GOES_DOWN)}"]


def _or_say(words: str) -> str:
    return f" || {{ echo {shlex.quote(words)} >&2; exit 1; }}"


def call(host, function, below=None, timeout_s: float | None = None, **arguments) -> dict | None:
    """Call a function of one of MODULES as root on a host. Arguments and result are JSON.

    `below`: the lab's folder there, by default the one above the host's. timeout_s: SECONDS without. LabError with the
    message of an OSError or a ValueError.
    """
    request = json.dumps([function.__module__, function.__name__, arguments])
    command = shlex.join(["-I", "-S", "-c", RECEIVE, str(below or host.root.parent), request])
    # not from the host's own folder, which may be about to be mounted or unmounted
    output = host.run(f"cd / && {host.python} {command} <<'LABBOOK-END'\n{_text()}\nLABBOOK-END",
                      timeout=timeout_s or SECONDS, root=True).stdout
    answer = json.loads(output)
    if isinstance(answer, dict) and "error" in answer:
        raise LabError(f"{host.name}: {answer['error']}")
    return answer


@cache
def _text() -> str:
    return base64.encodebytes(archive()).decode().strip()


def main() -> str:
    """The program that the host's Python runs."""
    return f"STAYS, SECONDS, GOES_DOWN = {STAYS!r}, {ALONE_SECONDS}, {GOES_DOWN!r}\n{MAIN}"


@cache
def archive() -> bytes:
    """A zip archive of MODULES that `python3 -I -S` runs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("__main__.py", main())
        for module in MODULES:
            path = _path(module)
            packed.writestr(str(path.relative_to(LIB)), path.read_text())
    return buffer.getvalue()


def _path(module):
    place = LIB.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
