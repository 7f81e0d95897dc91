"""Ways of Neutron's ML2 to plug ports without any agent.

One has the hypervisor make a tap device for each port, and who bridges it is the host's affair; the
other names the bridge to the compute host, which plugs the port itself.
"""

from neutron_lib import constants
from neutron_lib.plugins.ml2 import api

BRIDGE = "guests"


class TapDriver(api.MechanismDriver):
    KIND, DETAILS = "tap", {"port_filter": False}

    def initialize(self):
        pass

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(segment[api.ID], self.KIND, dict(self.DETAILS),
                                status=constants.PORT_STATUS_ACTIVE)
            return


class BridgeDriver(TapDriver):
    # said to be filtered already, or os-vif has iptables drop what goes through the bridge
    KIND, DETAILS = "bridge", {"port_filter": True, "bridge_name": BRIDGE}
