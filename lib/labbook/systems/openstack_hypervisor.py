"""libvirtd with a socket of its own, and the network that guests are in, on one host.

libvirt keeps its things where it was built to, which on a lab host nobody may write: the host's own
view gets folders there that are its own, as long as the platform is up.
"""

import shlex

from labbook.errors import SystemFailure

BRIDGE, GATEWAY, SUBNET = "guests", "192.168.211.1", "192.168.211.0/24"
POOL = ("192.168.211.10", "192.168.211.250")
START_SECONDS = 30
# Whatever lies in these folders is seen as before: /etc as a copy, the folders of /var/lib themselves.
VIEW = """set -e; home={home}; mkdir -p $home/view/etc $home/view/lib
if ! grep -q " /var/cache tmpfs " /proc/mounts; then
  cp -a /etc/. $home/view/etc; mkdir -p $home/view/etc/libvirt
  # it asks for these before it reads that it needs them not
  grep -q ^libvirt-qemu: /etc/passwd || echo libvirt-qemu:x:64055:64055::/: >> $home/view/etc/passwd
  grep -q ^libvirt-qemu: /etc/group || echo libvirt-qemu:x:64055: >> $home/view/etc/group
  mount --bind $home/view/etc /etc
  mount -t tmpfs tmpfs $home/view/lib
  for one in /var/lib/*; do
    [ -d "$one" ] || continue
    mkdir "$home/view/lib/${{one##*/}}" && mount --rbind "$one" "$home/view/lib/${{one##*/}}"
  done
  mount --rbind $home/view/lib /var/lib
  mount -t tmpfs tmpfs /var/cache; mount -t tmpfs tmpfs /var/log
fi
cp {home}/libvirt/qemu.conf /etc/libvirt/qemu.conf"""
NO_VIEW = """if grep -q " /var/cache tmpfs " /proc/mounts; then
  umount -l /var/cache /var/log /var/lib {home}/view/lib /etc
fi; true"""
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
  [ -s $one ] && kill -9 $(cat $one); rm -f $one; done 2> /dev/null; true"""


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
        self.host.run(VIEW.format(home=home))
        self.host.run(NETWORK.format(bridge=BRIDGE, gateway=GATEWAY))
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
        self.host.run(NO_VIEW.format(home=shlex.quote(str(self.place.home))))

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
