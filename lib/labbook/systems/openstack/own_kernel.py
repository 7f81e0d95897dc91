"""A kernel of the user's own, by which a lab's guests run on the machine's processors (KVM).

Debian's kernel boots under few hypervisors that offer /dev/kvm to a machine which is a guest itself. The environment
file names one that does, as `programs: {kernel: FOLDER}`.
"""

import hashlib
import os
from pathlib import Path

from labbook.errors import InputError, LabError

KEY = "programs.kernel"
FILE, MODULES = "vmlinuz", "modules"
FOLDER = f"a folder with {FILE}, and {MODULES} (*.ko) of drivers that are not built in"
MORE_MODULES = ("ext4",)    # which Debian's kernel for clouds has built in
DEVICE = "/dev/kvm"
WITHOUT = f"or leave out {KEY}: then servers' processors are emulated"


def files(folder: str) -> tuple[Path, Path]:
    """The kernel in this folder, and the folder of its modules, which need not be there. InputError without a
    kernel that can be read."""
    kernel = Path(folder) / FILE
    if not kernel.is_file() or not os.access(kernel, os.R_OK):
        raise InputError(f"{kernel} cannot be read", file="environment file", key=KEY, allowed=FOLDER)
    return kernel, kernel.with_name(MODULES)


def digest(folder: str) -> str:
    """Identifies the kernel and its modules."""
    kernel, modules = files(folder)
    found = hashlib.sha256()
    for file in (kernel, *sorted(modules.rglob("*.ko"))):
        found.update(f"{file.relative_to(kernel.parent)} {file.stat().st_size}\n".encode() + file.read_bytes())
    return found.hexdigest()


def lacking(folder: str) -> list[tuple[str, str, str]]:
    """(what is needed, why it is not there or empty, remedy) for `labbook doctor`; whether the kernel boots is tried
    when a platform comes up."""
    try:
        files(folder)
        unread = ""
    except InputError as error:
        unread = error.message
    device = "" if os.access(DEVICE, os.R_OK | os.W_OK) else (
        f"{DEVICE} may not be written by this user" if os.path.exists(DEVICE) else f"there is no {DEVICE}")
    return [(f"kernel {Path(folder) / FILE}", unread, f"Name {FOLDER}, {WITHOUT}"),
            (DEVICE, device, f"Let this user write it (group kvm), or have the hypervisor offer it, {WITHOUT}")]


def refused(folder: str, why: str) -> LabError:
    return LabError(f"the kernel in {folder}, which the environment file names as {KEY}, {why}",
                    remedy=f"Name another one, {WITHOUT}")
