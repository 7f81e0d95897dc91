"""What a guest is made of: Debian packages of this machine's own release, fetched by its apt."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.shelf import made
from labbook.lab.transfer import say

# What a server's user needs: a shell and its tools, ssh, Open MPI, bonnie++.
PACKAGES = ("base-files", "base-passwd", "bash", "bonnie++", "coreutils", "dash", "diffutils", "e2fsprogs",
            "findutils", "grep", "gzip", "hostname", "iproute2", "libc-bin", "libopenmpi3", "mawk", "mount",
            "openmpi-bin", "openssh-client", "openssh-server", "procps", "sed", "tar", "util-linux",
            "busybox-static")
KERNEL = "linux-image-cloud-amd64"   # names the package of the newest one
SECONDS = 600


def packages() -> Path:
    """The cached folder with the packages (*.deb), the kernel's as kernel.deb among them.

    LabError when apt cannot have them.
    """
    kernel = _newest_kernel()
    wanted = [line.split("'")[1] for line in _apt("--print-uris", "install", *PACKAGES).splitlines()
              if line.startswith("'")]
    recipe = repr((sorted(uri.rsplit("/", 1)[1] for uri in wanted), kernel))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    return made(f"guest-packages-{digest}", lambda folder: _fill(folder, kernel))


def _fill(folder, kernel):
    say("fetching the Debian packages that guests are made of")
    with tempfile.TemporaryDirectory(prefix="labbook-guest-") as scratch:
        _apt("--download-only", "install", *PACKAGES, archives=scratch)
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


def _apt(*words, archives="") -> str:
    """As on a machine that has no package yet, so that all are told; needs no root."""
    with tempfile.TemporaryDirectory(prefix="labbook-apt-") as scratch:
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
