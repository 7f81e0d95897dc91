"""nova-conductor that reports once it has started."""

from nova.cmd.conductor import main  # first: it settles how the service waits
from openstack_plugin import early  # noqa: F401

start = main
