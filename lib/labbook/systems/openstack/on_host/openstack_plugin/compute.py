"""nova-compute with two things more than Nova has.

Volumes over NBD go to QEMU's own client, by Nova's driver for network disks. And a server may have more
cores than the machine: Nova shares the cores out several times over, but refuses one server more than all.
"""

from nova.cmd.compute import main  # first: it settles how the service waits
from nova.conductor import api
from nova.virt.libvirt import driver
from openstack_plugin import early  # noqa: F401

ready = api.API.wait_until_ready
has = driver.LibvirtDriver.update_provider_tree


def soon(self, context):
    """Both start at once: what is said to the conductor before it listens is lost, and waited for."""
    return ready(self, context, early_timeout=1, early_attempts=60)


def has_more(self, tree, name, *more, **named):
    has(self, tree, name, *more, **named)
    inventory = tree.data(name).inventory
    cores = inventory["VCPU"]
    cores["max_unit"] = int(cores["total"] * cores["allocation_ratio"])
    tree.update_inventory(name, inventory)


def start():
    driver.VOLUME_DRIVERS["nbd"] = "nova.virt.libvirt.volume.net.LibvirtNetVolumeDriver"
    driver.LibvirtDriver.update_provider_tree = has_more
    api.API.wait_until_ready = soon
    return main()
