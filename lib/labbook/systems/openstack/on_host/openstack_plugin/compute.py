"""nova-compute with two additions.

Volumes over NBD are attached by QEMU's client, through Nova's driver for network disks. And a server may have
more cores than the machine, and a larger disk than its own: Nova overcommits both, but refuses one server with
more than all.
"""

from nova.cmd.compute import main  # first: it sets up the threading of the service
from nova.conductor import api
from nova.virt.libvirt import driver
from openstack_plugin import early  # noqa: F401

wait_until_ready = api.API.wait_until_ready
update_provider_tree = driver.LibvirtDriver.update_provider_tree


def wait_with_short_timeouts(self, context):
    """Both services start at once: a message to the conductor before it listens is lost until a timeout."""
    return wait_until_ready(self, context, early_timeout=1, early_attempts=60)


def update_with_large_servers(self, tree, name, *more, **named):
    update_provider_tree(self, tree, name, *more, **named)
    inventory = tree.data(name).inventory
    for what in ("VCPU", "DISK_GB"):
        one = inventory[what]
        one["max_unit"] = int(one["total"] * one["allocation_ratio"])
    tree.update_inventory(name, inventory)


def start():
    driver.VOLUME_DRIVERS["nbd"] = "nova.virt.libvirt.volume.net.LibvirtNetVolumeDriver"
    driver.LibvirtDriver.update_provider_tree = update_with_large_servers
    api.API.wait_until_ready = wait_with_short_timeouts
    return main()
