"""nova-conductor with an early first report."""

from nova.cmd.conductor import main  # first: it sets up the threading of the service
from openstack_plugin import early  # noqa: F401

start = main
