"""Whether guests may run on the machine's own processors (KVM): found by booting one."""

import hashlib
import json
import shlex
from contextlib import suppress

from labbook.errors import SystemFailure
from labbook.lab.cache.build import made

NAME = "openstack-try"
SECONDS = 20        # a guest is at its first process within 2 s, or never
MARK = "labbook: booting"   # what guest_files/init.sh says first
MACHINE = "uname -rv; grep -m 1 'model name' /proc/cpuinfo; qemu-system-x86_64 --version | head -n 1"
TOLD = "told.json"


def accelerated(host, guest, place) -> bool:
    """`place`: where the guest's folder is on the host. Found once for each kernel, processor and
    QEMU."""
    if host.run("test -w /dev/kvm", check=False).exit_code:
        return False
    told = repr((guest.name, host.run(MACHINE).stdout))
    digest = hashlib.sha256(told.encode()).hexdigest()[:10]

    def fill(folder):
        (folder / TOLD).write_text(json.dumps({"boots": boots(host, place, "kvm", "host")}))

    return json.loads((made(f"kvm-{digest}", fill) / TOLD).read_text())["boots"]


def boots(host, place, accelerator: str, processor: str, seconds: float = SECONDS) -> bool:
    """Whether a guest comes to its first process within so long."""
    line = shlex.join(["qemu-system-x86_64", "-machine", f"pc,accel={accelerator}", "-cpu", processor,
                       "-m", "256", "-display", "none", "-monitor", "none", "-serial", "stdio",
                       "-nic", "none", "-no-reboot", "-kernel", f"{place}/vmlinuz", "-initrd",
                       f"{place}/ramdisk", "-append", "console=ttyS0 quiet", "-drive",
                       f"file={place}/guest-0.5gb.raw,format=raw,if=virtio,snapshot=on"])
    process = host.start(NAME, line)
    try:
        with suppress(SystemFailure):
            return host.wait_for(lambda: MARK in process.log_tail(), "a guest to boot", seconds, process)
        return False
    finally:
        process.kill()
