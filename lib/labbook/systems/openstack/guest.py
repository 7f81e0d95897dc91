"""The image that guests of a lab's cloud boot from: small, quick to boot, with what benchmarks need.

It is made of unpacked Debian packages (sshd, Open MPI, bonnie++) with a shell script as the first process,
once, on a lab host, where root may do what that takes, and cached.
"""

import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError, SystemFailure
from labbook.lab.cache.build import build_once
from labbook.lab.cache.push import push
from labbook.lab.ssh.transfer import say
from labbook.systems.base import Needs
from labbook.systems.openstack import own_kernel
from labbook.systems.openstack.guest_packages import packages

NEEDS = Needs(packages=("e2fsprogs", "openssh-client", "dpkg"), commands=("mkfs.ext4", "ssh-keygen", "dpkg-deb"))
FILES = Path(__file__).with_name("guest_files")
RECIPE = 1
SIZES_GB = (0.5, 1, 2)      # of the images; `guest` is the smallest
BITS = 24                   # of the guests' network
BUILD_SECONDS = 300
PACKED = "root.raw.gz"      # the least image, as it comes from the host that makes it
IMAGE_MODE = 0o600          # servers' disks begin with it
USER = "root"
RAMDISK_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_scsi", "sr_mod", "isofs", "virtio_rng")
RAMDISK_FOLDERS = ("bin", "dev", "modules", "proc", "root", "sys")
TRY, TRY_SECONDS = "try-guest", 20        # a guest reaches its first process within 2 s, or never
MARK = "labbook: booting"   # printed first by guest_files/init.sh
# With the machine's last start, since a try may have failed under a load that has gone.
MACHINE = ("uname -rv; grep -m 1 'model name' /proc/cpuinfo; qemu-system-x86_64 --version | head -n 1; "
           "cat /proc/sys/kernel/random/boot_id")
RESULT = "result.json"
KVM = (own_kernel.DEVICE, "kvm", "host")    # a device, and QEMU's accelerator and processor


@dataclass(frozen=True)
class Guest:
    """A folder of the cache with kernel, ramdisk and a raw image of each size."""

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
        """Identifies recipe and packages."""
        return self.folder.name


def make(host, sizes_gb=SIZES_GB, kernel: str | None = None) -> Guest:
    """The guest, made on `host` if it is not cached; LabError if it cannot be made. kernel: the folder of one of the
    user's own; see own_kernel."""
    debs = packages()
    recipe = [(FILES / name).read_bytes() for name in ("ramdisk.sh", "init.sh", "build.sh")]
    own = (own_kernel.digest(kernel),) if kernel else ()
    ingredients = repr((RECIPE, debs.name, recipe, tuple(sizes_gb), *own))
    digest = hashlib.sha256(ingredients.encode()).hexdigest()[:8]
    guest = Guest(build_once(f"guest-{digest}", lambda folder: _fill(folder, host, debs, sizes_gb, kernel)))
    for gb in sizes_gb:
        if guest.image(gb).stat().st_mode & 0o077:      # one of an earlier version
            guest.image(gb).chmod(IMAGE_MODE)
    return guest


def _fill(folder: Path, host, debs: Path, sizes_gb, kernel):
    say("making the image that the lab's servers boot from, once")
    work = host.root / "guest-build"
    packages_there = push(host, debs)
    host.run(f"rm -rf {work} && mkdir -p {work}")
    try:
        host.put((FILES / "init.sh").read_text().replace("GUEST_BITS", str(BITS)), work / "init.sh")
        host.put(FILES / "build.sh", work / "build.sh")
        least = min(sizes_gb)
        used = host.run(f"PATH=$PATH:/usr/sbin:/sbin sh {work}/build.sh {packages_there} {work} "
                        f"{round(least * 1024)} && gzip -1 {work}/root.raw", timeout=BUILD_SECONDS).stdout.strip()
        (folder / PACKED).touch(IMAGE_MODE)
        host.get(work / PACKED, folder / PACKED)
        busybox = host.get(work / "busybox")
    finally:
        host.run(f"rm -rf {work}")
    if kernel:
        _boot_files(folder, *own_kernel.files(kernel), busybox, (*RAMDISK_MODULES, *own_kernel.MORE_MODULES))
    else:
        _boot_files_of_package(folder, debs / "kernel.deb", busybox)
    _images(folder, sizes_gb)
    say(f"made; its files have {used.splitlines()[-1]} MB")


def _boot_files_of_package(folder, package, busybox):
    unpacked = folder / "kernel"
    _run(["dpkg-deb", "-x", str(package), str(unpacked)])
    _boot_files(folder, next((unpacked / "boot").glob("vmlinuz-*")), unpacked / "lib" / "modules", busybox)
    shutil.rmtree(unpacked)


def _boot_files(folder, kernel, modules, busybox, wanted=RAMDISK_MODULES):
    """Write kernel and ramdisk, with those of the `wanted` modules that are not built into the kernel."""
    shutil.copyfile(kernel, folder / "vmlinuz")
    init = (FILES / "ramdisk.sh").read_bytes()
    (folder / "ramdisk").write_bytes(make_ramdisk(init, busybox, modules, wanted))


def _images(folder, sizes_gb):
    """Write an image of each size with the same files; all their blocks are allocated."""
    packed, least = folder / PACKED, folder / "least.raw"
    least.touch(IMAGE_MODE)
    with gzip.open(packed) as source, open(least, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    packed.unlink()
    for gb in sizes_gb:
        path, size = Guest(folder).image(gb), round(gb * 1024) << 20
        path.touch(IMAGE_MODE)
        shutil.copyfile(least, path)
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


def make_ramdisk(init: bytes, busybox: bytes, modules: Path, wanted=RAMDISK_MODULES) -> bytes:
    """The compressed archive of the ramdisk. `modules`: folder of a kernel's modules, of which it has the `wanted`."""
    found = {_module_name(file): file for file in sorted(modules.rglob("*.ko"))}
    order = in_order(wanted, {name: depends(file.read_bytes()) for name, file in found.items()})
    entries = [(folder, 0o40755, b"") for folder in RAMDISK_FOLDERS]
    entries += [("init", 0o100755, init), ("bin/busybox", 0o100755, busybox),
                ("modules/order", 0o100644, " ".join(order).encode())]
    entries += [(f"modules/{name}.ko", 0o100644, found[name].read_bytes()) for name in order]
    return gzip.compress(cpio_archive(entries), 6, mtime=0)


def in_order(wanted, needs: dict[str, list[str]]) -> list[str]:
    """Module names, each after those that it needs, without those compiled into the kernel."""
    order = []
    for name in wanted:
        if name in needs and name not in order:
            order += [one for one in in_order(needs[name], needs) if one not in order] + [name]
    return order


def depends(module: bytes) -> list[str]:
    """Names of the modules that a module's file says it needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return found[1].decode().replace("-", "_").split(",") if found and found[1] else []


def cpio_archive(entries) -> bytes:
    """A cpio archive (newc) of (name, mode, content)."""
    parts = [_entry(number, *entry) for number, entry in enumerate(entries, 1)]
    return b"".join((*parts, _entry(0, "TRAILER!!!", 0, b"")))


def _entry(number, name, mode, content) -> bytes:
    # inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name length, checksum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _module_name(file: Path) -> str:
    return file.stem.replace("-", "_")


def accelerated(host, guest, folder, kernel: str | None = None) -> bool:
    """Whether guests can run on the machine's processors (KVM), found by booting one.

    folder: the guest's on the host. Tried once for each start of the machine, kernel, QEMU and guest. With a `kernel` of the
    user's own, LabError where they cannot.
    """
    device, accelerator, processor = KVM
    if host.run(f"test -w {device}", check=False).exit_code:
        if kernel:
            raise own_kernel.refused(kernel, f"needs {device}, which {host.name} may not write")
        return False
    tried = repr((guest.name, host.run(MACHINE).stdout))
    digest = hashlib.sha256(tried.encode()).hexdigest()[:10]

    def fill(draft):
        booted = boots(host, folder, accelerator, processor)
        if kernel and not booted:
            raise own_kernel.refused(kernel, f"does not reach its first process under {device} in {TRY_SECONDS} s")
        (draft / RESULT).write_text(json.dumps({"boots": booted}))

    return json.loads((build_once(f"kvm-{digest}", fill) / RESULT).read_text())["boots"]


def boots(host, folder, accelerator: str, processor: str, seconds: float = TRY_SECONDS) -> bool:
    """Whether a guest reaches its first process within this time; `folder` as in `accelerated`."""
    line = shlex.join(["qemu-system-x86_64", "-machine", f"pc,accel={accelerator}", "-cpu", processor,
                       "-m", "256", "-display", "none", "-monitor", "none", "-serial", "stdio",
                       "-nic", "none", "-no-reboot", "-kernel", f"{folder}/vmlinuz", "-initrd",
                       f"{folder}/ramdisk", "-append", "console=ttyS0 quiet", "-drive",
                       f"file={folder}/guest-0.5gb.raw,format=raw,if=virtio,snapshot=on"])
    process = host.start(TRY, line)
    try:
        with suppress(SystemFailure):
            return host.wait_for(lambda: MARK in process.log_tail(), "a guest to boot", seconds, process)
        return False
    finally:
        process.kill()
