"""The image that servers of a lab's cloud boot from: small, quick to boot, with what benchmarks need.

Of Debian's packages, unpacked: sshd, Open MPI, bonnie++, and a shell as its first process. It is made
on a host of the lab, whose root may do what that takes, once, and kept in the cache.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import made
from labbook.lab.cache.push import bring
from labbook.lab.ssh.transfer import say
from labbook.systems.base import Needs
from labbook.systems.openstack.guest_packages import packages
from labbook.systems.openstack.guest_ramdisk import ramdisk

NEEDS = Needs(packages=("e2fsprogs", "openssh-client", "dpkg"), commands=("mkfs.ext4", "ssh-keygen", "dpkg-deb"))
FILES = Path(__file__).with_name("guest_files")
RECIPE = 1
SIZES_GB = (0.5, 1, 2)      # of the images, beside `guest`, which is the least of them
BITS = 24                   # of the network that guests are in
BUILD_SECONDS = 300
USER = "root"


@dataclass(frozen=True)
class Guest:
    """`folder` of the cache has kernel, ramdisk and one raw image a size."""

    folder: Path

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def ramdisk(self) -> Path:
        return self.folder / "ramdisk"

    def image(self, gb: float) -> Path:
        return self.folder / f"guest-{gb:g}gb.raw"

    @property
    def name(self) -> str:
        """Tells it from guests of another recipe or other packages."""
        return self.folder.name


def guest(host, sizes_gb=SIZES_GB) -> Guest:
    """The guest, made on `host` if the cache has none; LabError when that cannot be."""
    debs = packages()
    recipe = [(FILES / name).read_bytes() for name in ("ramdisk.sh", "init.sh", "build.sh")]
    told = repr((RECIPE, debs.name, recipe, tuple(sizes_gb)))
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    return Guest(made(f"guest-{digest}", lambda folder: _fill(folder, host, debs, sizes_gb)))


def _fill(folder: Path, host, debs: Path, sizes_gb):
    say("making the image that the lab's servers boot from, once")
    work = host.root / "guest-build"
    place = bring(host, debs)
    host.run(f"rm -rf {work} && mkdir -p {work}")
    try:
        host.put((FILES / "init.sh").read_text().replace("GUEST_BITS", str(BITS)), work / "init.sh")
        host.put(FILES / "build.sh", work / "build.sh")
        least = min(sizes_gb)
        used = host.run(f"PATH=$PATH:/usr/sbin:/sbin sh {work}/build.sh {place} {work} {round(least * 1024)} && "
                        f"gzip -1 {work}/root.raw", timeout=BUILD_SECONDS).stdout.strip()
        host.get(work / "root.raw.gz", folder / "root.raw.gz")
        busybox = host.get(work / "busybox")
    finally:
        host.run(f"rm -rf {work}")
    _boot_files(folder, debs / "kernel.deb", busybox)
    _images(folder, sizes_gb)
    say(f"made, with {used.splitlines()[-1]} MB in it")


def _boot_files(folder, package, busybox):
    """Kernel and ramdisk."""
    unpacked = folder / "kernel"
    _run(["dpkg-deb", "-x", str(package), str(unpacked)])
    shutil.copy(next((unpacked / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
    init = (FILES / "ramdisk.sh").read_bytes()
    (folder / "ramdisk").write_bytes(ramdisk(init, busybox, unpacked / "lib" / "modules"))
    shutil.rmtree(unpacked)


def _images(folder, sizes_gb):
    """One for each size, with the same files and more room; all blocks of them have a place."""
    packed, least = folder / "root.raw.gz", folder / "least.raw"
    with gzip.open(packed) as source, open(least, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    packed.unlink()
    for gb in sizes_gb:
        path, size = Guest(folder).image(gb), round(gb * 1024) << 20
        shutil.copy(least, path)
        if size > least.stat().st_size:
            os.truncate(path, size)
            _run(["/sbin/resize2fs", str(path)])
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    least.unlink()


def _run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"cannot make the guest's image: {error}") from None
    if done.returncode:
        raise LabError(f"cannot make the guest's image: {done.stderr.strip()[-1000:]}")
