"""Open vSwitch on one host, with its datapath in user space, so that the kernel needs no module of it.

A platform's compute service and libvirt plug guests into it themselves. Its packets have whole checksums, or
guests drop them: a tap device hands over those that a guest's driver leaves to the device as they are.
"""

FOLDER = "/run/openvswitch"     # where its tools look for it; a lab host has a /run of its own
SOCKET = f"{FOLDER}/db.sock"
DATAPATH = "ovs-netdev"         # a device of the datapath's own
START_SECONDS = 30
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
PACKAGES = ("openvswitch-switch",)
# Words of a guest's kernel, for its driver: it computes checksums itself, and splits what it sends.
GUEST_WORDS = "virtio_net.csum=0 virtio_net.gso=0"
BRIDGE = """set -e
ovs-vsctl --timeout={seconds} --may-exist add-br {name} -- set bridge {name} datapath_type=netdev fail_mode=standalone
ip addr add {address} dev {name}; ip link set {name} up"""


class VSwitch:
    """On `host`, with its database in `folder`."""

    def __init__(self, host, folder):
        self.host, self._folder = host, folder

    def up(self, bridge: str, address: str) -> None:
        """Start it, and make a bridge with this address; SystemFailure with a log's end if it does not answer."""
        self.host.run(f"mkdir -p {self._folder} {FOLDER} && rm -f {self._folder}/conf.db && "
                      f"ovsdb-tool create {self._folder}/conf.db {SCHEMA}")
        database = self.host.start("openstack-ovsdb", f"/usr/sbin/ovsdb-server {self._folder}/conf.db "
                                                      f"--remote=punix:{SOCKET} --no-chdir -vconsole:warn")
        self.host.wait_for(lambda: self._runs(f"test -S {SOCKET}"), "Open vSwitch's database", START_SECONDS, database)
        self.host.run(f"ovs-vsctl --timeout={START_SECONDS} --no-wait init")
        self.host.start("openstack-vswitch", f"/usr/sbin/ovs-vswitchd unix:{SOCKET} --disable-system --no-chdir "
                                             "-vconsole:warn")
        self.host.run(BRIDGE.format(seconds=START_SECONDS, name=bridge, address=address))

    def down(self) -> None:
        """Remove what its ended processes left, but for bridges; may be repeated."""
        self.host.run(f"ip link del {DATAPATH} 2> /dev/null; rm -rf {FOLDER}")

    def _runs(self, command) -> bool:
        return self.host.run(command, check=False).exit_code == 0
