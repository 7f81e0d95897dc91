"""nova-compute that leaves volumes over NBD to QEMU's own client, by Nova's driver for network disks."""

from nova.cmd.compute import main  # first: it settles how the service waits
from nova.conductor import api
from nova.virt.libvirt import driver

from openstack_plugin import early  # noqa: F401

ready = api.API.wait_until_ready


def soon(self, context):
    """Both start at once: what is said to the conductor before it listens is lost, and waited for."""
    return ready(self, context, early_timeout=1, early_attempts=60)


def start():
    driver.VOLUME_DRIVERS["nbd"] = "nova.virt.libvirt.volume.net.LibvirtNetVolumeDriver"
    api.API.wait_until_ready = soon
    return main()
