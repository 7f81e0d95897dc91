"""libvirtd with a socket of its own, and the network that guests are in, on one host.

libvirt keeps its things where it was built to, which on a lab host nobody may write, and where a machine
may have servers of its own: the host's view gets folders there that are its own, as long as the platform
is up.
"""

import shlex

from labbook.errors import SystemFailure

BRIDGE, GATEWAY, SUBNET = "guests", "192.168.211.1", "192.168.211.0/24"
POOL = ("192.168.211.10", "192.168.211.250")
START_SECONDS = 30
MARK = "labbook-view"
# What lies in these folders is seen as before, but for what is libvirt's: the machine's own servers and
# networks are none of this host's. The first mount carries the mark by which all are known again.
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
  # it asks for these before it reads that it needs them not
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
# A tap device comes up: into the bridge with it.
BRIDGING = """ip -o monitor link | while read -r number name rest; do
  case $name in
    tap*) case $rest in *"master {bridge}"*) ;; *) ip link set "${{name%:}}" master {bridge} up ;; esac ;;
  esac
done"""
GUESTS = "/run/libvirt/qemu"     # a file with its process for each
END_GUESTS = f"""for one in {GUESTS}/*.pid; do
  pid=$(cat $one); case $(cat /proc/$pid/comm) in qemu-system*) kill -9 $pid ;; *) pid= ;; esac; rm -f $one
  tries=0; while [ "$pid" ] && [ -e /proc/$pid ] && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
done 2> /dev/null; true"""


class Hypervisor:
    """On the host that `place` (of openstack_config) is on."""

    def __init__(self, host, place):
        self.host, self.place = host, place
        self._folder = place.home / "libvirt"

    def up(self) -> None:
        """SystemFailure, with its log's tail, when libvirtd does not answer."""
        home = shlex.quote(str(self.place.home))
        self.host.run(f"mkdir -p {self._folder}")
        self.host.put(qemu_settings(), self._folder / "qemu.conf")
        self.host.put(settings(self._folder), self._folder / "libvirtd.conf")
        self.host.run(VIEW.format(home=home, mark=MARK))
        self.host.run(NETWORK.format(bridge=BRIDGE, gateway=GATEWAY))
        if self.place.plug == "tap":    # else libvirt does so, and finds it done
            self.host.put(BRIDGING.format(bridge=BRIDGE), self._folder / "bridging.sh")
            self.host.start("openstack-bridging", f"sh {self._folder}/bridging.sh")
        process = self.host.start("openstack-libvirtd", f"/usr/sbin/libvirtd -f {self._folder}/libvirtd.conf "
                                                        f"-p {self._folder}/pid")
        self.host.wait_for(lambda: self.host.run(f"test -S {self._folder}/libvirt-sock", check=False)
                           .exit_code == 0, "libvirtd's socket", START_SECONDS, process)

    def end_guests(self) -> None:
        self.host.run(END_GUESTS)

    def down(self) -> None:
        """What `up` made but for its processes, which are ended by then; twice does no harm."""
        self.end_guests()
        self.host.run(NO_NETWORK.format(bridge=BRIDGE))
        self.host.run(NO_VIEW.format(home=shlex.quote(str(self.place.home)), mark=MARK))

    def version(self) -> str:
        """Such as QEMU 7.2.22."""
        said = self.host.run("qemu-system-x86_64 --version", check=False).stdout.split()
        if "version" not in said:
            raise SystemFailure(f"{self.host.name}: qemu-system-x86_64 does not say its version")
        return f"QEMU {said[said.index('version') + 1]}"


def settings(folder) -> str:
    """libvirtd.conf."""
    return _values(unix_sock_dir=str(folder), auth_unix_rw="none", auth_unix_ro="none", log_level=3,
                   log_outputs="3:stderr", unix_sock_rw_perms="0700", unix_sock_ro_perms="0700")


def qemu_settings() -> str:
    """qemu.conf: no other user, no control groups or namespaces, which a lab host has for itself, and no
    virtlogd."""
    return _values(user="root", group="root", dynamic_ownership=0, remember_owner=0,
                   security_driver="none", stdio_handler="file", seccomp_sandbox=0) + \
        "cgroup_controllers = []\nnamespaces = []\n"


def _values(**values) -> str:
    return "".join(f'{key} = "{value}"\n' if isinstance(value, str) else f"{key} = {value}\n"
                   for key, value in values.items())
