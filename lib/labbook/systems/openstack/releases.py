"""What differs between the releases of OpenStack that are here: where they come from, how each of their
services is started, how their databases are made."""

from dataclasses import dataclass
from pathlib import Path

from labbook.lab.cache.python_packages import PythonPackages

# By the folder's name on hosts, and by what Debian calls its Python modules.
PARTS = ("keystone", "glance", "placement", "nova", "neutron", "cinder")
PORTS = {"keystone": 5000, "glance": 9292, "placement": 8778, "nova": 8774, "neutron": 9696, "cinder": 8776}
DEBIAN_PYTHON = "/usr/bin/python3"
# Of PyPI, what has no wheel there; it is plain Python.
BUILT = ("ovs", "simplegeneric")
PACKAGES = PythonPackages(
    "openstack", "2026.2",
    ("keystone==30.0.0", "nova==34.0.0", "glance==33.0.0", "openstack-placement==16.0.0",
     "neutron==29.0.0", "cinder==29.0.0", "gunicorn", "pymysql"),
    Path(__file__).with_name("openstack.txt"), built=BUILT)
# Shared by both: the hypervisor and what it takes, the broker, the drive that tells a guest its address.
HYPERVISOR = ("qemu-system-x86", "qemu-utils", "qemu-block-extra", "libvirt-daemon",
              "libvirt-daemon-driver-qemu", "python3-libvirt", "genisoimage", "rabbitmq-server",
              "mariadb-server-core", "iproute2", "procps")
MANAGE = {  # the steps that make its databases, in words for its own tool
    "keystone": ("keystone.cmd.manage:main", (("db_sync",),)),
    "glance": ("glance.cmd.manage:main", (("db", "sync"),)),
    "placement": ("placement.cmd.manage:main", (("db", "sync"),)),
    "nova": ("nova.cmd.manage:main", (
        ("api_db", "sync"), ("cell_v2", "map_cell0", "--database_connection", "{cell0}"), ("db", "sync"),
        ("cell_v2", "create_cell", "--name", "cell1", "--database_connection", "{database}",
         "--transport-url", "{broker}"))),
    "neutron": ("neutron.db.migration.cli:main", (("upgrade", "heads"),)),
    "cinder": ("cinder.cmd.manage:main", (("db", "sync"),)),
}
# What has no port: {process: (its part, its entry)}.
WORKERS = {"nova-conductor": ("nova", "openstack_plugin.conductor:start"),
           "nova-scheduler": ("nova", "openstack_plugin.scheduler:start"),
           "nova-compute": ("nova", "openstack_plugin.compute:start"),
           "cinder-scheduler": ("cinder", "cinder.cmd.scheduler:main")}
VOLUMES = ("cinder", "cinder.cmd.volume:main")


@dataclass(frozen=True)
class Release:
    """`applications`: parts that gunicorn serves, by their WSGI application; `servers`: parts that are
    servers themselves, by their entry. `plug`: how a guest comes to the network: bridge, which the
    platform does itself, or tap, whose devices the lab must bridge. `python`: packages of the host's
    Python, None: Debian's."""

    name: str
    packages: tuple[str, ...]
    applications: dict[str, str]
    servers: dict[str, str]
    plug: str
    python: PythonPackages | None = None

    @property
    def recipe(self) -> str:
        """What its databases depend on, but for the versions of Debian's packages."""
        pins = self.python.pins.read_text() if self.python else ""
        return repr((self.name, self.packages, pins, MANAGE))


ZED = Release(
    # dmidecode: its os-brick asks for it where the kernel does not tell what the machine is
    "zed", (*HYPERVISOR, *(f"python3-{part}" for part in PARTS), "python3-gunicorn", "python3-pymysql",
            "dmidecode"),
    applications={"keystone": "keystone.server.wsgi:initialize_public_application()",
                  "placement": "placement.wsgi:init_application()"},
    servers={"glance": "glance.cmd.api:main", "nova": "nova.cmd.api_os_compute:main",
             "neutron": "neutron.cmd.eventlet.server:main", "cinder": "cinder.cmd.api:main"},
    plug="bridge")
LATEST = Release(
    "2026.2", HYPERVISOR,
    applications={"keystone": "keystone.wsgi.api:application", "glance": "glance.wsgi.api:application",
                  "placement": "placement.wsgi.api:application",
                  "nova": "nova.wsgi.osapi_compute:application",
                  "neutron": "neutron.wsgi.api:application", "cinder": "cinder.wsgi.api:application"},
    # its os-vif knows no bridges any more; and libvirt takes no tap device that Zed has made
    servers={}, plug="tap", python=PACKAGES)
RELEASES = {release.name: release for release in (ZED, LATEST)}
