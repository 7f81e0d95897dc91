"""Servers that are containers: what runs libvirt's LXC driver on a host, and a container's first process.

A container is in control groups below those of its host, whose limits so hold for it, too. libvirt makes them where
the first process of its namespaces is. So libvirtd has namespaces of its own (control groups, processes, mounts); its
containers end with it.
"""

import shlex

from labbook.errors import LabError, SystemFailure
from labbook.lab.local import cgroups, freezer
from labbook.systems.openstack import guest
from labbook.systems.openstack.hypervisor import GATEWAY, Hypervisor

DEVICE = "guests0"      # on which libvirt makes each container's device; the host has one of these, too
HOSTS_DEVICE = "guests"
# Of the host's groups those with a freezer are always there, and are removed with the lab, by name in all hierarchies.
HAS_GROUPS = "grep -q ':freezer:/labbook-' /proc/1/cgroup"
GROUPS = """# Run in a mount namespace of its own: puts itself into the host's group of each hierarchy and starts libvirtd;
# with `clear` it removes what groups libvirt left there.
set -e
hierarchies() {{
  mount -t tmpfs groups /sys/fs/cgroup
  cut -d: -f2 /proc/self/cgroup | while read -r names; do
    place=/sys/fs/cgroup/${{names#name=}}
    case $names in
      "") ! grep -q ' /sys/fs/cgroup/unified cgroup2 ' /proc/self/mounts || {{
            mkdir ${{place}}unified; mount -t cgroup2 groups ${{place}}unified; }} ;;
      name=*) mkdir $place; mount -t cgroup -o none,$names groups $place ;;
      *) mkdir $place; mount -t cgroup -o $names groups $place ;;
    esac
  done
}}
group=$(sed -n 's/^[0-9]*:freezer://p' /proc/1/cgroup); group=${{group%.ssh}}
if [ "$1" = clear ]; then
  hierarchies; tries=0      # the kernel releases a killed container's a moment later
  while [ -n "$(find /sys/fs/cgroup/*$group/machine -type d 2> /dev/null)" ] && [ $tries -lt 100 ]; do
    find /sys/fs/cgroup/*$group/machine -depth -type d -exec rmdir {{}} + 2> /dev/null || sleep 0.05
    tries=$((tries + 1))
  done
  exit
fi
if [ "$1" != inside ]; then
  hierarchies
  for place in /sys/fs/cgroup/*; do
    mkdir -p $place$group
    for one in ${{place}}${{group%/*}} $place$group; do
      for file in cpuset.cpus cpuset.mems; do     # a new group has none, and takes no process so
        [ ! -e $one/$file ] || [ -n "$(cat $one/$file)" ] || cat ${{one%/*}}/$file > $one/$file
      done
    done
    echo $$ > $place$group/cgroup.procs
  done
  umount -R /sys/fs/cgroup
  exec unshare --cgroup --mount --propagation slave --pid --fork --kill-child --mount-proc sh $0 inside
fi
hierarchies
# A shell waits for orphans, too; libvirtd as the first process would leave one of each container.
/usr/sbin/libvirtd -f {folder}/libvirtd.conf -p {folder}/pid &
wait $!"""
# Mounts that Nova makes below `instances` are to be seen by libvirtd.
SHARED = "cd {home} && {{ grep -q ' {home}/instances ' /proc/self/mounts || mount --bind instances instances; }} && " \
         "mount --make-shared instances"
NOT_SHARED = "! grep -q ' {home}/instances ' /proc/self/mounts || umount -R -l {home}/instances"
# The other end of the pair only keeps the device up.
NETWORK = """set -e
ip link add {device} type veth peer name {device}p; ip link set {device}p up; ip link set {device} up
ip link add {own} link {device} type macvlan mode bridge
ip addr add {gateway}/24 dev {own}; ip link set {own} up"""
NO_NETWORK = "ip link del {device} 2> /dev/null; true"
INIT = """#!/bin/sh
# A container's first process: address and key from the config drive's content, sshd. libvirt has mounted /dev, /proc
# and /sys. No swap: that would be the machine's.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
drive=/config/openstack/latest
echo "labbook: booting"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /dev/shm /run/sshd /root/.ssh
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ip link set lo up
{shared}
while :; do sleep 3600 & wait; done
"""
PROCESS = "openstack-libvirtd"
IN_MOUNTS = "unshare --mount --propagation slave"


def possible() -> bool:
    """Whether hosts on this machine can have containers."""
    return cgroups.version() == 1 and freezer.is_mounted()


def init() -> str:
    """The script: it shares with a virtual machine's what comes after the config drive and before the swap."""
    whole = (guest.FILES / "init.sh").read_text().replace("GUEST_BITS", str(guest.BITS))
    return INIT.format(shared=whole[whole.index("field() {"):whole.index("# A quarter of the root")].rstrip())


class Containers(Hypervisor):
    """As Hypervisor, on the host of a Layout whose `virt_type` is lxc."""

    def up(self) -> None:
        """LabError where the host has no control groups in which containers could be."""
        if self.host.run(HAS_GROUPS, check=False).exit_code:
            raise LabError(f"{self.host.name}: containers need the control groups of version 1, with a freezer",
                           remedy="Leave out what runs in containers, or boot with systemd.unified_cgroup_hierarchy=0")
        self.host.run(SHARED.format(home=self._home))
        super().up()

    def end_guests(self) -> None:
        if process := self.host.process(PROCESS):
            process.kill()
            self.host.run(f"pkill -KILL -s {process.pid}", check=False)

    def down(self) -> None:
        super().down()
        self.host.run(f"[ ! -e {self._script} ] || {IN_MOUNTS} sh {self._script} clear")
        self.host.run(NOT_SHARED.format(home=self._home))

    def version(self) -> str:
        """libvirt's version, such as libvirt 9.0.0 (LXC)."""
        output = self.host.run("/usr/sbin/libvirtd --version", check=False).stdout.split()
        if not output:
            raise SystemFailure(f"{self.host.name}: libvirtd does not say its version")
        return f"libvirt {output[-1]} (LXC)"

    def _connect(self) -> None:
        self.host.run(NETWORK.format(device=DEVICE, own=HOSTS_DEVICE, gateway=GATEWAY))

    def _disconnect(self) -> None:
        self.host.run(NO_NETWORK.format(device=DEVICE))

    def _command(self) -> str:
        self.host.put(GROUPS.format(folder=self._folder), self._script)
        return f"{IN_MOUNTS} sh {self._script}"

    @property
    def _script(self):
        return self._folder / "groups.sh"

    @property
    def _home(self) -> str:
        return shlex.quote(str(self.layout.home))
