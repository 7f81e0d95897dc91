"""The Debian packages that a guest is made of, of this machine's release, fetched by its apt."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import build_once
from labbook.lab.ssh.transfer import say

# A shell with its tools, ssh, Open MPI, bonnie++.
PACKAGES = ("base-files", "base-passwd", "bash", "bonnie++", "coreutils", "dash", "diffutils", "e2fsprogs",
            "findutils", "grep", "gzip", "hostname", "iproute2", "libc-bin", "libopenmpi3", "mawk", "mount",
            "openmpi-bin", "openssh-client", "openssh-server", "procps", "sed", "tar", "util-linux",
            "busybox-static")
KERNEL = "linux-image-cloud-amd64"   # depends on the newest kernel's package
APT = ("/var/lib/apt/lists", "/etc/apt")
WANTED = "wanted.json"
SECONDS = 600


def packages() -> Path:
    """The cached folder with the packages' files (*.deb), the kernel's as kernel.deb.

    LabError when apt cannot have them.
    """
    names = wanted()
    digest = hashlib.sha256(repr((names["files"], names["kernel"])).encode()).hexdigest()[:8]
    return build_once(f"guest-packages-{digest}", lambda folder: _fill(folder, names["kernel"]))


def wanted() -> dict:
    """{files: file names of all packages, kernel: name of the newest kernel's package}.

    apt takes seconds for this, so it runs once for each state of its lists.
    """
    digest = hashlib.sha256(repr((WANTED, PACKAGES, KERNEL, _state())).encode()).hexdigest()[:8]
    folder = build_once(f"guest-wanted-{digest}",
                        lambda folder: (folder / WANTED).write_text(json.dumps(_ask(folder))))
    return json.loads((folder / WANTED).read_text())


def _state() -> list:
    """Path, size and mtime of each file that apt depends on."""
    files = sorted(os.path.join(place, name) for top in APT for place, _, names in os.walk(top) for name in names)
    seen = [(file, os.stat(file)) for file in files if os.path.exists(file)]
    return [(file, stat.st_size, stat.st_mtime_ns) for file, stat in seen]


def _ask(folder) -> dict:
    uris = [line.split("'")[1] for line in _apt(folder, "--print-uris", "install", *PACKAGES).splitlines()
            if line.startswith("'")]
    return {"files": sorted(uri.rsplit("/", 1)[1] for uri in uris), "kernel": _newest_kernel()}


def _fill(folder, kernel):
    say("fetching the Debian packages that guests are made of")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _apt(folder, "--download-only", "install", *PACKAGES, archives=scratch)
        for deb in Path(scratch).glob("*.deb"):
            shutil.move(deb, folder / deb.name.replace("%3a", "_"))
        _run(["apt-get", "-q", "download", kernel], cwd=scratch)
        shutil.move(next(Path(scratch).glob("linux-image-*.deb")), folder / "kernel.deb")


def _newest_kernel() -> str:
    """The package's name, which has the version."""
    output = _run(["apt-cache", "depends", KERNEL])
    names = [line.split()[-1] for line in output.splitlines() if "Depends: linux-image-" in line]
    if not names:
        raise LabError(f"apt knows no {KERNEL}", remedy="apt-get update, on Debian 12")
    return names[0]


def _apt(folder, *arguments, archives="") -> str:
    """The output of apt-get as on a machine without packages, so that all are listed; needs no root.

    folder: a draft of the cache, which is cleared if this process is killed.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        status = Path(scratch) / "status"
        status.touch()
        options = {"Dir::State::status": status, "Dir::State::extended_states": f"{scratch}/states",
                   "Dir::Cache::archives": archives or scratch, "Debug::NoLocking": "1",
                   "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": ""}
        if archives:
            (Path(archives) / "partial").mkdir()
        return _run(["apt-get", "-q", "-y", "--no-install-recommends",
                     *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
                     *arguments])


def _run(command, cwd=None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"cannot fetch a guest's packages: {error}",
                       remedy="It takes Debian's apt-get") from None
    if done.returncode:
        raise LabError(f"cannot fetch a guest's packages: {done.stderr.strip()[-1500:]}",
                       remedy="See that this machine reaches its Debian archive: apt-get update")
    return done.stdout
