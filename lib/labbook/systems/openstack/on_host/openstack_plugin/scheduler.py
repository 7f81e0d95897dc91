"""nova-scheduler that reports once it has started."""

from nova.cmd.scheduler import main  # first: it settles how the service waits
from openstack_plugin import early  # noqa: F401

start = main
