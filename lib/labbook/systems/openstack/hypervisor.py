"""libvirtd with its own socket, and the guests' network, on one host.

libvirt has its folders compiled in. A lab host may not write there, and the machine may run guests of its
own. So the host's view gets private folders in these places while the platform is up.
"""

import shlex

from labbook.errors import SystemFailure
from labbook.systems.openstack.vswitch import VSwitch

BRIDGE, GATEWAY, SUBNET = "guests", "192.168.211.1", "192.168.211.0/24"
POOL = ("192.168.211.10", "192.168.211.250")
START_SECONDS = 30
MARK = "labbook-view"
# The content of these folders stays visible except libvirt's, so that the machine's own guests and networks
# are not seen. The first mount has a mark by which all are recognized again.
VIEW = """set -e; home={home}
own() {{
  mkdir -p $home/view$1; mount -t tmpfs {mark} $home/view$1
  for one in $1/*; do
    [ -d "$one" ] && [ "${{one##*/}}" != libvirt ] || continue
    mkdir "$home/view$one"; mount --rbind "$one" "$home/view$one"
  done
  mount --rbind $home/view$1 $1
}}
if ! grep -q "^{mark} " /proc/mounts; then
  own /var/lib; own /var/cache; own /var/log
  mkdir -p $home/view/etc; cp -a /etc/. $home/view/etc
  rm -rf $home/view/etc/libvirt; mkdir $home/view/etc/libvirt
  # libvirt looks these up before it reads in its configuration that it does not need them
  grep -q ^libvirt-qemu: /etc/passwd || echo libvirt-qemu:x:64055:64055::/: >> $home/view/etc/passwd
  grep -q ^libvirt-qemu: /etc/group || echo libvirt-qemu:x:64055: >> $home/view/etc/group
  mount --bind $home/view/etc /etc
fi
cp $home/libvirt/qemu.conf /etc/libvirt/qemu.conf"""
NO_VIEW = """home={home}
! grep -q "/view/etc /etc " /proc/self/mountinfo || umount -l /etc
for one in /var/log /var/cache /var/lib; do
  ! grep -q "^{mark} $one " /proc/mounts || umount -l $one
  ! grep -q "^{mark} $home/view$one " /proc/mounts || umount -l $home/view$one
done"""
NETWORK = """set -e
ip link add {bridge} type bridge stp_state 0 forward_delay 0
ip addr add {gateway}/24 dev {bridge}; ip link set {bridge} up"""
NO_NETWORK = """for one in $(ip -o link show master {bridge} 2> /dev/null | cut -d: -f2 | cut -d@ -f1); do
  ip link del $one; done
ip link del {bridge} 2> /dev/null; true"""
# Adds each tap device that appears to the bridge.
BRIDGING = """ip -o monitor link | while read -r number name rest; do
  case $name in
    tap*) case $rest in *"master {bridge}"*) ;; *) ip link set "${{name%:}}" master {bridge} up ;; esac ;;
  esac
done"""
GUESTS = "/run/libvirt/qemu"     # has a pid file of each guest
END_GUESTS = f"""for one in {GUESTS}/*.pid; do
  pid=$(cat $one); case $(cat /proc/$pid/comm) in qemu-system*) kill -9 $pid ;; *) pid= ;; esac; rm -f $one
  tries=0; while [ "$pid" ] && [ -e /proc/$pid ] && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
done 2> /dev/null; true"""


class Hypervisor:
    """The hypervisor on the host of this Layout."""

    def __init__(self, host, layout):
        self.host, self.layout = host, layout
        self._folder = layout.home / "libvirt"
        self._vswitch = VSwitch(host, layout.home / "vswitch")

    def up(self) -> None:
        """Start libvirtd and make the network; SystemFailure with its log's end if it does not answer."""
        home = shlex.quote(str(self.layout.home))
        self.host.run(f"mkdir -p {self._folder}")
        self.host.put(qemu_settings(), self._folder / "qemu.conf")
        self.host.put(settings(self._folder), self._folder / "libvirtd.conf")
        self.host.run(VIEW.format(home=home, mark=MARK))
        self._connect()
        process = self.host.start("openstack-libvirtd", self._command())
        self.host.wait_for(lambda: self.host.run(f"test -S {self._folder}/libvirt-sock", check=False)
                           .exit_code == 0, "libvirtd's socket", START_SECONDS, process)

    def end_guests(self) -> None:
        self.host.run(END_GUESTS)

    def down(self) -> None:
        """Undo `up` once its processes have ended; may be repeated."""
        self.end_guests()
        self._disconnect()
        self.host.run(NO_VIEW.format(home=shlex.quote(str(self.layout.home)), mark=MARK))

    def version(self) -> str:
        """QEMU's version, such as QEMU 7.2.22."""
        output = self.host.run("qemu-system-x86_64 --version", check=False).stdout.split()
        if "version" not in output:
            raise SystemFailure(f"{self.host.name}: qemu-system-x86_64 does not say its version")
        return f"QEMU {output[output.index('version') + 1]}"

    def _connect(self) -> None:
        """Make the guests' network."""
        if self.layout.plug == "ovs":
            self._vswitch.up(BRIDGE, f"{GATEWAY}/24")
        else:
            self.host.run(NETWORK.format(bridge=BRIDGE, gateway=GATEWAY))
        if self.layout.plug == "tap":    # otherwise libvirt adds guests to the bridge itself
            self.host.put(BRIDGING.format(bridge=BRIDGE), self._folder / "bridging.sh")
            self.host.start("openstack-bridging", f"sh {self._folder}/bridging.sh")

    def _disconnect(self) -> None:
        self.host.run(NO_NETWORK.format(bridge=BRIDGE))
        self._vswitch.down()

    def _command(self) -> str:
        """That of libvirtd."""
        return f"/usr/sbin/libvirtd -f {self._folder}/libvirtd.conf -p {self._folder}/pid"


def settings(folder) -> str:
    """libvirtd.conf."""
    return _values(unix_sock_dir=str(folder), auth_unix_rw="none", auth_unix_ro="none", log_level=3,
                   log_outputs="3:stderr", unix_sock_rw_perms="0700", unix_sock_ro_perms="0700")


def qemu_settings() -> str:
    """qemu.conf: everything as root, and no control groups, namespaces and virtlogd, since a lab host is
    isolated by itself."""
    return _values(user="root", group="root", dynamic_ownership=0, remember_owner=0,
                   security_driver="none", stdio_handler="file", seccomp_sandbox=0) + \
        "cgroup_controllers = []\nnamespaces = []\n"


def _values(**values) -> str:
    return "".join(f'{key} = "{value}"\n' if isinstance(value, str) else f"{key} = {value}\n"
                   for key, value in values.items())
