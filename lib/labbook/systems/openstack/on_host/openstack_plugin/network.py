"""Mechanism drivers of Neutron's ML2 that plug ports without an agent.

TapDriver has the hypervisor make a tap device for each port, which a process on the host adds to the
bridge. BridgeDriver and OvsDriver name the bridge, of Linux or of Open vSwitch, to the compute host, which plugs the
port itself. MacvlanDriver names the device on which libvirt makes one of each container's own.
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
    # claims that ports are filtered, or os-vif has iptables drop the bridge's packets
    KIND, DETAILS = "bridge", {"port_filter": True, "bridge_name": BRIDGE}


class MacvlanDriver(TapDriver):
    # Nova's name for it is that of the device that a virtual machine would get
    KIND, DETAILS = "macvtap", {"macvtap_source": f"{BRIDGE}0", "macvtap_mode": "bridge",
                                "physical_interface": f"{BRIDGE}0"}


class OvsDriver(TapDriver):
    KIND, DETAILS = "ovs", {"port_filter": False, "ovs_hybrid_plug": False, "bridge_name": BRIDGE,
                            "datapath_type": "netdev", "connectivity": "l2"}
