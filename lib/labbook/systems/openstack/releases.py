"""What differs between the OpenStack releases: packages, how services start, how databases are made."""

from dataclasses import dataclass
from pathlib import Path

from labbook.lab.python_packages import PythonPackages

# Names of the parts' folders on hosts, and of Debian's Python modules.
PARTS = ("keystone", "glance", "placement", "nova", "neutron", "cinder")
PORTS = {"keystone": 5000, "glance": 9292, "placement": 8778, "nova": 8774, "neutron": 9696, "cinder": 8776}
DEBIAN_PYTHON = "/usr/bin/python3"
# Packages without a wheel on PyPI; they are pure Python.
BUILT = ("ovs", "simplegeneric")
PACKAGES = PythonPackages(
    "openstack", "2026.2",
    ("keystone==30.0.0", "nova==34.0.0", "glance==33.0.0", "openstack-placement==16.0.0",
     "neutron==29.0.0", "cinder==29.0.0", "gunicorn", "pymysql"),
    Path(__file__).with_name("openstack.txt"), built=BUILT)
# For both releases: hypervisor, broker, database, and the config drive that gives a guest its address.
HYPERVISOR = ("qemu-system-x86", "qemu-utils", "qemu-block-extra", "libvirt-daemon",
              "libvirt-daemon-driver-qemu", "python3-libvirt", "genisoimage", "rabbitmq-server",
              "mariadb-server-core", "iproute2", "procps")
CONTAINERS = ("libvirt-daemon-driver-lxc",)     # where guests are containers
MANAGE = {  # per part: entry of its management tool, and the tool's arguments of each step
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
COMPUTE = "nova-compute"
COMPUTE_OF_CONTAINERS = ("nova", "openstack_plugin.containers:start")
# Processes without a port: {process: (its part, its entry)}.
WORKERS = {"nova-conductor": ("nova", "openstack_plugin.conductor:start"),
           "nova-scheduler": ("nova", "openstack_plugin.scheduler:start"),
           COMPUTE: ("nova", "openstack_plugin.compute:start"),
           "cinder-scheduler": ("cinder", "cinder.cmd.scheduler:main")}
VOLUMES = ("cinder", "cinder.cmd.volume:main")


@dataclass(frozen=True)
class Release:
    """applications: parts that gunicorn serves, with their WSGI application.
    servers: parts that are servers themselves, with their entry.
    plug: how a guest gets into the network: `bridge`, by the platform, or `tap`, whose devices the lab
        adds to the bridge.
    python: packages for the host's Python; None: Debian's.
    """

    name: str
    packages: tuple[str, ...]
    applications: dict[str, str]
    servers: dict[str, str]
    plug: str
    python: PythonPackages | None = None

    @property
    def recipe(self) -> str:
        """What its databases depend on, except the versions of Debian's packages."""
        pins = self.python.pins.read_text() if self.python else ""
        return repr((self.name, self.packages, pins, MANAGE))


ZED = Release(
    # dmidecode: os-brick runs it if the kernel does not identify the machine
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
    # its os-vif no longer knows bridges, and libvirt accepts no tap device made by Zed
    servers={}, plug="tap", python=PACKAGES)
RELEASES = {release.name: release for release in (ZED, LATEST)}
