"""nova-compute whose servers are containers (libvirt's LXC driver).

A container's root is mounted with a loop device that goes with its last mount, so that none outlives a host that was
killed. And as Nova gives no config drive to a container, its content is put into the root, beside a first process
that reads it there.
"""

from openstack_plugin import compute  # first: it sets up the threading of the service

# isort: split
import shutil
import subprocess
from pathlib import Path

import nova.privsep.fs
from nova.virt.disk.mount import loop
from nova.virt.libvirt import driver, utils

INIT = Path(__file__).parent.parent / "container-init"
DRIVE = "disk.config"       # in a server's folder
PLACE, WANTED = "openstack/latest", ("meta_data.json", "network_data.json")     # on the drive
CONTENT = f"config/{PLACE}"     # in the server's root


class LoopMount(loop.LoopMount):
    """The image's path stands for the device until the mount attaches one, and the last umount detaches it."""

    def get_dev(self):
        self.device, self.linked = self.image.path, True
        return True

    def unget_dev(self):
        self.linked = False

    def mnt_dev(self):
        nova.privsep.fs.mount(None, self.mapped_device, self.mount_dir, ["-o", "loop,noatime"])
        self.mounted = True
        return True


create_drive = driver.LibvirtDriver._create_configdrive


def create_and_read_drive(self, context, instance, *more, **named):
    """Nova does so once the root is mounted, right before the start."""
    create_drive(self, context, instance, *more, **named)
    furnish(Path(utils.get_instance_path(instance)))


def furnish(folder):
    """Put the first process and the config drive's content into the mounted root of a server's folder."""
    root = folder / "rootfs"
    shutil.copyfile(INIT, root / "sbin" / "init")
    (root / "sbin" / "init").chmod(0o755)
    (root / CONTENT).mkdir(parents=True, exist_ok=True)
    for name in WANTED:     # without a mount: the machine's kernel may have no driver for the drive's file system
        read = subprocess.run(["isoinfo", "-R", "-i", folder / DRIVE, "-x", f"/{PLACE}/{name}"], check=True,
                              stdout=subprocess.PIPE)
        (root / CONTENT / name).write_bytes(read.stdout)


def start():
    loop.LoopMount = LoopMount
    driver.LibvirtDriver._create_configdrive = create_and_read_drive
    return compute.start()
