"""The services of a platform as processes of a host: their command lines, as pure functions."""

from dataclasses import dataclass, field

from labbook.systems.openstack import config
from labbook.systems.openstack.releases import MANAGE, PORTS, VOLUMES, WORKERS

NBD_PORT = 10809
DATABASES = ("keystone", "glance", "placement", "nova", "nova_api", "nova_cell0", "neutron", "cinder")


@dataclass(frozen=True)
class Service:
    """`port`: where it answers, None for one that only takes messages."""

    name: str
    command: str
    port: int | None = None
    env: dict = field(default_factory=dict)

    @property
    def process(self) -> str:
        return f"openstack-{self.name}"


def environment(place) -> dict:
    """What each service finds its files by."""
    return {"HOME": place.home, "XDG_CACHE_HOME": place.home, "PYTHONWARNINGS": "ignore",
            "OS_KEYSTONE_CONFIG_FILES": place.file("keystone"),
            "OS_NEUTRON_CONFIG_FILES": place.file("neutron").name,
            **{f"OS_{part.upper()}_CONFIG_DIR": place.etc(part) for part in config.CONF}}


def apis(release, place) -> list[Service]:
    """Those that a client calls."""
    env = environment(place)
    found = [Service(f"{part}-api", f"{place.python} -m gunicorn -c {place.etc(part)}/gunicorn.conf.py",
                     PORTS[part], env) for part in release.applications]
    return found + [Service(f"{part}-api", config.entry(place, f"{part}-api", where, part), PORTS[part], env)
                    for part, where in release.servers.items()]


def workers(place) -> list[Service]:
    return [Service(name, config.entry(place, name, where, part), env=environment(place) | (
        awaiting(*asked_at_once(place)) if name == "nova-compute" else {}))
            for name, (part, where) in WORKERS.items()]


def asked_at_once(place) -> list[str]:
    """What nova-compute would give up on, or leave for a minute."""
    return [f"{config.HERE}:{PORTS['keystone']}", f"{config.HERE}:{PORTS['placement']}",
            f"{place.control}:{config.BROKER_PORT}", f"{place.home}/libvirt/libvirt-sock"]


def awaiting(*there) -> dict:
    """See openstack_plugin/service.py."""
    return {"AWAIT": " ".join(there)}


def volumes(place) -> list[Service]:
    """On the host that keeps volumes: what serves them, and what is told to by Cinder."""
    part, where = VOLUMES
    store = (f"qemu-storage-daemon --chardev socket,id=control,path={place.home}/control,server=on,wait=off "
             f"--monitor chardev=control --nbd-server addr.type=inet,addr.host=0.0.0.0,addr.port={NBD_PORT}")
    return [Service("volume-server", store, NBD_PORT),
            Service("cinder-volume", config.entry(place, "cinder-volume", where, part)
                    + f" --config-file {place.etc(part)}/nbd.conf", env=environment(place) | awaiting(
                        f"{config.HERE}:{NBD_PORT}", f"{place.control}:{config.BROKER_PORT}"))]


def gunicorn_files(release, place) -> dict[str, str]:
    """{path below the home: text} for the parts that gunicorn serves."""
    return {f"etc/{part}/gunicorn.conf.py": config.gunicorn(
        application, PORTS[part], [f"{part}-api", "--config-file", str(place.file(part))]
        if part == "cinder" else [f"{part}-api"], place) for part, application in release.applications.items()}


def making(place, part) -> list[str]:
    """Command lines that make a part's tables."""
    where, steps = MANAGE[part]
    named = {"{cell0}": template("nova_cell0"), "{database}": template("nova"),
             "{broker}": "rabbit://{username}:{password}@{hostname}:{port}/"}
    return [" ".join([config.entry(place, f"{part}-manage", where, part),
                      *(f"'{named.get(word, word)}'" for word in step)]) for step in steps]


def template(name: str) -> str:
    """A database of Nova's by the address and the user that its file has, whichever these are."""
    return "{scheme}://{username}:{password}@{hostname}:{port}/" + name


def discovering(place) -> str:
    """The command line that makes a new compute host known to the scheduler."""
    return config.entry(place, "nova-manage", MANAGE["nova"][0], "nova") + " cell_v2 discover_hosts"
