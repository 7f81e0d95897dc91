"""What a guest is made of: Debian packages of this machine's own release, fetched by its apt."""

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

# What a server's user needs: a shell and its tools, ssh, Open MPI, bonnie++.
PACKAGES = ("base-files", "base-passwd", "bash", "bonnie++", "coreutils", "dash", "diffutils", "e2fsprogs",
            "findutils", "grep", "gzip", "hostname", "iproute2", "libc-bin", "libopenmpi3", "mawk", "mount",
            "openmpi-bin", "openssh-client", "openssh-server", "procps", "sed", "tar", "util-linux",
            "busybox-static")
KERNEL = "linux-image-cloud-amd64"   # names the package of the newest one
APT = ("/var/lib/apt/lists", "/etc/apt")
TOLD = "told.json"
SECONDS = 600


def packages() -> Path:
    """The cached folder with the packages (*.deb), the kernel's as kernel.deb among them.

    LabError when apt cannot have them.
    """
    told = wanted()
    digest = hashlib.sha256(repr((told["files"], told["kernel"])).encode()).hexdigest()[:8]
    return build_once(f"guest-packages-{digest}", lambda folder: _fill(folder, told["kernel"]))


def wanted() -> dict:
    """{files: names of all packages' files, kernel: the name of its package, with the version}.

    apt takes seconds to tell, so it is asked once for each state of its lists.
    """
    digest = hashlib.sha256(repr((PACKAGES, KERNEL, _state())).encode()).hexdigest()[:8]
    folder = build_once(f"guest-wanted-{digest}", lambda folder: (folder / TOLD).write_text(json.dumps(_ask(folder))))
    return json.loads((folder / TOLD).read_text())


def _state() -> list:
    """Of each file that apt goes by: path, size, time of its last change."""
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
    """The package's name with its version."""
    said = _run(["apt-cache", "depends", KERNEL])
    names = [line.split()[-1] for line in said.splitlines() if "Depends: linux-image-" in line]
    if not names:
        raise LabError(f"apt knows no {KERNEL}", remedy="apt-get update, on Debian 12")
    return names[0]


def _apt(folder, *words, archives="") -> str:
    """As on a machine that has no package yet, so that all are told; needs no root. `folder`: a draft of
    the cache, in which nothing stays when this process is killed."""
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
                     *words])


def _run(command, cwd=None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"cannot fetch a guest's packages: {error}",
                       remedy="It takes Debian's apt-get") from None
    if done.returncode:
        raise LabError(f"cannot fetch a guest's packages: {done.stderr.strip()[-1500:]}",
                       remedy="See that this machine reaches its Debian archive: apt-get update")
    return done.stdout
