"""The services of a platform: their processes and command lines, as pure functions."""

from dataclasses import dataclass, field

from labbook.systems.openstack import config
from labbook.systems.openstack.releases import (COMPUTE, COMPUTE_OF_CONTAINERS, DEBIAN_PYTHON, MANAGE, PORTS, VOLUMES,
                                                WORKERS)

NBD_PORT = 10809
DATABASES = ("keystone", "glance", "placement", "nova", "nova_api", "nova_cell0", "neutron", "cinder")


@dataclass(frozen=True)
class Service:
    """A process of the platform. `port`: where it answers HTTP; None for one that only reads messages."""

    name: str
    command: str
    port: int | None = None
    env: dict = field(default_factory=dict)

    @property
    def process(self) -> str:
        return f"openstack-{self.name}"


def environment(layout) -> dict:
    """Environment variables by which services find their files."""
    return {"HOME": layout.home, "XDG_CACHE_HOME": layout.home, "PYTHONWARNINGS": "ignore",
            "OS_KEYSTONE_CONFIG_FILES": layout.file("keystone"),
            "OS_NEUTRON_CONFIG_FILES": layout.file("neutron").name,
            **{f"OS_{part.upper()}_CONFIG_DIR": layout.etc(part) for part in config.CONF}}


def apis(release, layout) -> list[Service]:
    """The services that clients call."""
    env = environment(layout)
    found = [Service(f"{part}-api", f"{layout.python} -m gunicorn -c {layout.etc(part)}/gunicorn.conf.py",
                     PORTS[part], env) for part in release.applications]
    return found + [Service(f"{part}-api", config.entry(layout, f"{part}-api", where, part), PORTS[part], env)
                    for part, where in release.servers.items()]


def workers(layout) -> list[Service]:
    """The services without a port on the platform's host; that for guests only where it computes."""
    return [_worker(name, layout) for name in WORKERS if name != COMPUTE or not layout.machines] + (
        [relay(layout, layout.control, config.HERE)] if layout.machines else [])


def computing(layout) -> list[Service]:
    """The services on a compute host of its own. They reach the platform's APIs at the addresses that its own
    services use, through relays."""
    return [relay(layout, config.HERE, layout.control), _worker(COMPUTE, layout)]


def relay(layout, listen: str, to: str) -> Service:
    """Connections to the APIs' ports at one address go to the same ports at another one."""
    words = " ".join(f"{listen}:{port}={to}:{port}" for port in PORTS.values())
    return Service("relay", f"{DEBIAN_PYTHON} {layout.home}/plugins/openstack_plugin/relay.py {words}")


def _worker(name, layout) -> Service:
    part, where = COMPUTE_OF_CONTAINERS if (name, layout.virt_type) == (COMPUTE, "lxc") else WORKERS[name]
    more = awaiting(*asked_at_once(layout)) if name == COMPUTE else {}
    return Service(name, config.entry(layout, name, where, part), env=environment(layout) | more)


def asked_at_once(layout) -> list[str]:
    """What nova-compute needs at its start: without it, it would give up or wait for a minute."""
    apis = layout.control if layout.machines else config.HERE
    return [f"{apis}:{PORTS['keystone']}", f"{apis}:{PORTS['placement']}",
            f"{layout.control}:{config.BROKER_PORT}", f"{layout.home}/libvirt/libvirt-sock"]


def awaiting(*there) -> dict:
    """The environment variable AWAIT of openstack_plugin/service.py."""
    return {"AWAIT": " ".join(there)}


def volumes(layout, address: str) -> list[Service]:
    """On the volumes' host: the server of the volumes at `address`, and Cinder's service that controls
    it. The server lets in whoever reaches it: see `admission`."""
    part, where = VOLUMES
    store = (f"qemu-storage-daemon --chardev socket,id=control,path={layout.home}/control,server=on,wait=off "
             f"--monitor chardev=control --nbd-server addr.type=inet,addr.host={address},addr.port={NBD_PORT}")
    return [Service("volume-server", store, NBD_PORT),
            Service("cinder-volume", config.entry(layout, "cinder-volume", where, part)
                    + f" --config-file {layout.etc(part)}/nbd.conf", env=environment(layout) | awaiting(
                        f"{address}:{NBD_PORT}", f"{layout.control}:{config.BROKER_PORT}"))]


def admission(clients: list[str], *ports: int) -> str:
    """Shell commands, as root, that let only these addresses reach ports of the host: the server of the volumes asks
    for no password, since Nova and libvirt cannot give it one."""
    rules = [f"INPUT -p tcp --dport {port} {words}" for port in ports for words in (
        "-i lo -j ACCEPT", *(f"-s {client} -j ACCEPT" for client in clients), "-j DROP")]
    return "; ".join(["set -e; PATH=$PATH:/usr/sbin:/sbin", *(
        f"iptables -w -C {each} 2> /dev/null || iptables -w {'-A' if each.endswith('DROP') else '-I'} {each}"
        for each in rules)])


def gunicorn_files(release, layout) -> dict[str, str]:
    """{path below the home: text} of gunicorn's settings of the parts that it serves."""
    return {f"etc/{part}/gunicorn.conf.py": config.gunicorn(
        application, PORTS[part], [f"{part}-api", "--config-file", str(layout.file(part))]
        if part == "cinder" else [f"{part}-api"], layout) for part, application in release.applications.items()}


def making(layout, part) -> list[str]:
    """Command lines that create a part's tables."""
    where, steps = MANAGE[part]
    named = {"{cell0}": template("nova_cell0"), "{database}": template("nova"),
             "{broker}": "rabbit://{username}:{password}@{hostname}:{port}/"}
    return [" ".join([config.entry(layout, f"{part}-manage", where, part),
                      *(f"'{named.get(word, word)}'" for word in step)]) for step in steps]


def template(name: str) -> str:
    """Nova's URL template of a database: user and address are those of its configuration."""
    return "{scheme}://{username}:{password}@{hostname}:{port}/" + name


def discovering(layout) -> str:
    """The command line that registers a new compute host with the scheduler."""
    return config.entry(layout, "nova-manage", MANAGE["nova"][0], "nova") + " cell_v2 discover_hosts"
