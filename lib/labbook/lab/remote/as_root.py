"""Functions of labbook run as root on a real host, by `sudo`: what the local helper does, there.

The few modules that they need go along in one archive. They import the standard library and each
other alone, so that the host's own Python will do.
"""

import io
import json
import shlex
import zipfile
from functools import cache
from pathlib import Path

from labbook.errors import LabError

LIB = Path(__file__).resolve().parents[3]
MODULES = ("labbook", "labbook.lab", "labbook.lab.journal",
           "labbook.lab.disk", "labbook.lab.disk.loop_device", "labbook.lab.disk.tracefs",
           "labbook.lab.host", "labbook.lab.host.fuse",
           "labbook.lab.local", "labbook.lab.local.cgroups", "labbook.lab.local.kernel",
           "labbook.lab.local.sandbox", "labbook.lab.local.unmake",
           "labbook.lab.remote", "labbook.lab.remote.root")
ARCHIVE = "as-root.zip"     # in the lab's folder on the host
# In the lab's folder when it is being taken down. What a killed driver had under way there may
# still run, or only begin: nothing more is made then, and what is being made is waited for.
GOING = "going-down"
SECONDS = 120
MAIN = f"""import fcntl, importlib, json, os, subprocess, sys
module, function, arguments = json.loads(sys.argv[1])
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
alone = os.open(folder, os.O_RDONLY)
fcntl.flock(alone, fcntl.LOCK_EX)
if function.startswith("make") and os.path.exists(folder + "/{GOING}"):
    sys.exit("the lab is being taken down")
""" + """
os.umask(0o022)
os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
try:
    answer = getattr(importlib.import_module(module), function)(**arguments)
except (OSError, ValueError, subprocess.SubprocessError) as error:
    answer = {"error": str(error)}
json.dump(answer, sys.stdout)
"""


def going_down(lab: str) -> str:
    """A shell command that has nothing more made in a lab's folder, and waits for what is."""
    return f"[ ! -d {lab} ] || {{ touch {lab}/{GOING} && flock {lab} true; }}"


def unless_going_down(lab: str) -> list[str]:
    """Shell commands (`set -e`) before others that make something: see going_down."""
    return [f"exec 9< {lab}", "flock 9", f"[ ! -e {lab}/{GOING} ]"]


def call(host, function, below=None, **arguments) -> dict | None:
    """What `function`, of one of MODULES, returns when root calls it on `host`; all of it JSON.

    `below`: the folder for the archive; the lab's, if not said. LabError with the words of an
    OSError or a ValueError.
    """
    remote = str((below or host.root.parent) / ARCHIVE)
    host.put(archive(), remote)
    request = json.dumps([function.__module__, function.__name__, arguments])
    # not from the host's own folder, which may be what is mounted or unmounted
    said = host.run(f"cd / && {host.python} -I -S {shlex.quote(remote)} {shlex.quote(request)}",
                    timeout=SECONDS, root=True).stdout
    answer = json.loads(said)
    if isinstance(answer, dict) and "error" in answer:
        raise LabError(f"{host.name}: {answer['error']}")
    return answer


@cache
def archive() -> bytes:
    """MODULES as a program that `python3 -I -S` runs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("__main__.py", MAIN)
        for module in MODULES:
            path = _path(module)
            packed.writestr(str(path.relative_to(LIB)), path.read_text())
    return buffer.getvalue()


def _path(module):
    place = LIB.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
