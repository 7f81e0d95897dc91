"""The services' configuration files, as pure functions of a Layout."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from labbook.systems.openstack import paste, vswitch
from labbook.systems.openstack.releases import PORTS
from labbook.targets import USER

HERE = "127.0.0.1"          # everything but the volumes runs on one host and uses this address
DOMAIN = {"user_domain_id": "default", "project_domain_id": "default"}
REGION = "RegionOne"
BROKER_USER, BROKER_PORT = "openstack", 5672
NO_LIMIT = 100_000
# Processors of all servers together: eight of the report's m1.large fit, as on its four machines. Placement rounds
# the ratio, so half a processor is on top.
VCPUS = 16
QUIET = ",".join(f"{name}=ERROR" for name in (
    "amqp", "neutronclient", "os_brick", "oslo_policy", "py.warnings", "stevedore"))


@dataclass(frozen=True)
class Layout:
    """Paths, addresses and options of a platform on one host.

    home: the platform's folder there. control: data address of the host with database and broker.
    password: of the services, the database and the broker.
    python: the command that runs the release's Python there.
    cache_mode: libvirt's, of guests' disks. virt_type: libvirt's: qemu, kvm, or lxc for containers.
    node: name of the compute node.
    plug: see releases.Release; or `ovs`, by the platform into Open vSwitch; or `macvlan`, of containers.
    cpus: how many processors libvirt sees there.
    machines: how many compute hosts the platform has, if they are others than that of its other services; 0 where that
    one computes.
    """

    home: PurePosixPath
    control: str
    password: str = field(repr=False)
    python: str
    cache_mode: str = "none"
    virt_type: str = "qemu"
    node: str = "cloud"
    plug: str = "tap"
    cpus: int = 2
    machines: int = 0

    def database(self, name: str) -> str:
        return f"mysql+pymysql://{USER}:{self.password}@{self.control}:3306/{name}"

    @property
    def broker(self) -> str:
        return f"rabbit://{BROKER_USER}:{self.password}@{self.control}:{BROKER_PORT}/"

    def etc(self, part: str) -> PurePosixPath:
        return self.home / "etc" / part

    def file(self, part: str) -> PurePosixPath:
        return self.etc(part) / CONF[part]


CONF = {"keystone": "keystone.conf", "glance": "glance-api.conf", "placement": "placement.conf",
        "nova": "nova.conf", "neutron": "neutron.conf", "cinder": "cinder.conf"}


def ini(parts: dict) -> str:
    return "\n".join(line for name, options in parts.items() for line in (
        f"[{name}]", *(f"{key} = {value}" for key, value in options.items()), ""))


def files(layout: Layout) -> dict[str, str]:
    """{path below the home: text} of all configuration files."""
    texts = {f"etc/{part}/{CONF[part]}": ini(_common(layout, part) | {
        section: _common(layout, part).get(section, {}) | options
        for section, options in SECTIONS[part](layout).items()}) for part in CONF}
    for part, (name, text) in paste.FILES.items():
        texts[f"etc/{part}/{name}"] = ini(text())
    return texts


def _common(layout, part) -> dict:
    parts = {
        "DEFAULT": {"use_stderr": "true", "transport_url": layout.broker, "default_log_levels": QUIET},
        "database": {"connection": layout.database(part), "max_retries": 1, "retry_interval": 1},
        "oslo_concurrency": {"lock_path": layout.home / "locks"},
        "oslo_messaging_rabbit": {"rabbit_retry_interval": 1, "rabbit_retry_backoff": 1,
                                  "heartbeat_timeout_threshold": 120},
        "oslo_messaging_notifications": {"driver": "noop"},
    }
    if part != "keystone":
        parts["keystone_authtoken"] = {
            **credentials(layout, part), "www_authenticate_uri": f"http://{HERE}:{PORTS['keystone']}",
            "interface": "public",
            "service_token_roles": "service", "service_token_roles_required": "true"}
    return parts


def credentials(layout, part) -> dict:
    """Options by which a service logs in to call others."""
    return {"auth_type": "password", "auth_url": f"http://{HERE}:{PORTS['keystone']}/v3",
            "username": part, "password": layout.password, "project_name": "service",
            "region_name": REGION, **DOMAIN}


def keystone(layout) -> dict:
    keys = layout.home / "keys"
    return {
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        "token": {"provider": "fernet", "expiration": 86400},
        "fernet_tokens": {"key_repository": keys / "fernet"},
        "fernet_receipts": {"key_repository": keys / "fernet"},
        "credential": {"key_repository": keys / "credential"},
        "identity": {"password_hash_rounds": 4},
    }


def glance(layout) -> dict:
    store = layout.home / "images"
    return {
        "DEFAULT": {"bind_host": HERE, "bind_port": PORTS["glance"], "workers": 1,
                    "enabled_backends": "files:file", "enabled_import_methods": "[]",
                    "worker_self_reference_url": f"http://{HERE}:{PORTS['glance']}"},
        "glance_store": {"default_backend": "files"},
        "files": {"filesystem_store_datadir": store},
        "os_glance_staging_store": {"filesystem_store_datadir": layout.home / "staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": layout.home / "tasks"},
        "image_format": {"require_image_format_match": "false"},    # it takes a kernel for a disk
        "paste_deploy": {"flavor": "keystone",
                         "config_file": layout.etc("glance") / "glance-api-paste.ini"},
    }


def placement(layout) -> dict:
    return {"placement_database": {"connection": layout.database("placement")},
            "api": {"auth_strategy": "keystone"}}


def nova(layout) -> dict:
    return {
        "DEFAULT": {
            "host": layout.node, "my_ip": HERE, "state_path": layout.home / "nova",
            "instances_path": layout.home / "instances", "compute_driver": "libvirt.LibvirtDriver",
            "osapi_compute_listen": HERE, "osapi_compute_workers": 1,
            # each server gets a full copy of its image, as in the report's measurement
            "use_cow_images": "false",
            "force_config_drive": "true", "mkisofs_cmd": "genisoimage",
            # no agent plugs ports, so no event would come
            "vif_plugging_timeout": 0, "vif_plugging_is_fatal": "false",
            "cpu_allocation_ratio": (VCPUS / max(layout.machines, 1) + 0.5) / layout.cpus, "ram_allocation_ratio": 4,
            "disk_allocation_ratio": 100, "reserved_host_memory_mb": 512, "reserved_host_disk_mb": 0,
            "report_interval": 5, "service_down_time": 60, "running_deleted_instance_action": "noop",
        },
        "database": {"connection": layout.database("nova")},
        "api_database": {"connection": layout.database("nova_api")},
        "wsgi": {"api_paste_config": layout.etc("nova") / "api-paste.ini"},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": -1},
        "image_cache": {"remove_unused_base_images": "false", "manager_interval": -1},
        "glance": {"endpoint_override": f"http://{HERE}:{PORTS['glance']}", "num_retries": 2},
        "placement": credentials(layout, "placement"),
        "neutron": credentials(layout, "neutron"),
        "cinder": {"os_region_name": REGION, "catalog_info": "volumev3::publicURL"},
        "service_user": {"send_service_user_token": "true", **credentials(layout, "nova")},
        "libvirt": {
            "virt_type": layout.virt_type, "images_type": "raw", "inject_partition": -2,
            "snapshot_image_format": "qcow2",   # leaves out blocks that were never written
            "connection_uri": libvirt_uri(layout), "wait_soft_reboot_seconds": 10,
            "disk_cachemodes": ",".join(f"{kind}={layout.cache_mode}" for kind in ("file", "network"))},
        "os_vif_ovs": {"ovsdb_connection": f"unix:{vswitch.SOCKET}"},
        "vnc": {"enabled": "false"}, "spice": {"enabled": "false"},
        "quota": {"instances": NO_LIMIT, "cores": NO_LIMIT, "ram": -1},
        **helpers(layout, "nova", "nova_sys_admin", "vif_plug_ovs_privileged",
                  "vif_plug_linux_bridge_privileged", "privsep_osbrick"),
    }


def neutron(layout) -> dict:
    return {
        "DEFAULT": {
            "bind_host": HERE, "bind_port": PORTS["neutron"], "core_plugin": "ml2", "service_plugins": "",
            "auth_strategy": "keystone", "state_path": layout.home / "neutron",
            "api_paste_config": layout.etc("neutron") / "api-paste.ini",
            "api_workers": 0, "rpc_workers": 0, "rpc_state_report_workers": 0,
            "notify_nova_on_port_status_changes": "false", "notify_nova_on_port_data_changes": "false",
            "dhcp_agent_notification": "false"},
        "ml2": {"type_drivers": "local", "tenant_network_types": "local",
                "mechanism_drivers": f"labbook_{layout.plug}"},
        "quotas": {"quota_port": -1, "quota_network": -1, "quota_subnet": -1},
    }


def cinder(layout) -> dict:
    return {
        "DEFAULT": {
            "osapi_volume_listen": HERE, "osapi_volume_workers": 1, "auth_strategy": "keystone",
            "state_path": layout.home / "cinder", "api_paste_config": layout.etc("cinder") / "api-paste.ini",
            "glance_api_servers": f"http://{HERE}:{PORTS['glance']}", "host": layout.node,
            "enabled_backends": "nbd", "quota_volumes": NO_LIMIT, "quota_gigabytes": NO_LIMIT,
            "report_interval": 2},      # the first report comes after this time too
        "coordination": {"backend_url": f"file://{layout.home}/coordination"},
        **helpers(layout, "cinder", "cinder_sys_admin", "privsep_osbrick"),
    }


def nbd(layout, address: str) -> dict:
    """Options of the volume service beside cinder.conf; `address` is where it serves volumes."""
    return {"nbd": {
        "volume_driver": "openstack_plugin.volumes.NbdDriver", "volume_backend_name": "nbd",
        "nbd_folder": layout.home / "volumes", "nbd_control": layout.home / "control",
        "nbd_address": address, "nbd_direct": str(layout.cache_mode in ("none", "directsync")).lower()}}


def libvirt_uri(layout) -> str:
    driver = "lxc" if layout.virt_type == "lxc" else "qemu"
    return f"{driver}+unix:///system?socket={layout.home}/libvirt/libvirt-sock"


def helpers(layout, part, *sections) -> dict:
    """Options by which a service starts its helper for what only root may do."""
    line = entry(layout, "privsep-helper", "oslo_privsep.daemon:helper_main", part)
    return {section: {"helper_command": line} for section in sections}


def entry(layout, name: str, where: str, part: str) -> str:
    """The command line that runs a service's entry point by openstack_plugin/service.py."""
    program = layout.home / "plugins" / "openstack_plugin" / "service.py"
    return f"{layout.python} {program} {name} {where} --config-file {layout.file(part)}"


SECTIONS = {"keystone": keystone, "glance": glance, "placement": placement, "nova": nova,
            "neutron": neutron, "cinder": cinder}


# Workers freeze the objects of their imports, as openstack_plugin/service.py does. Their threads are the kernel's.
# Zed's oslo.log gives `logging` a lock of eventlet's, if anything has imported eventlet: two threads of the kernel
# that want this lock at once wait for ever. Later releases do so only where eventlet's threads are in use.
GUNICORN = """import gc
import logging
import sys
import threading


def post_fork(server, worker):
    sys.argv[:] = words
    gc.disable()


def post_worker_init(worker):
    logging.threading, logging._lock = threading, threading.RLock()
    gc.freeze()
    gc.enable()


"""


# An idle connection is kept so long. Of gunicorn's 2 s the end may meet a request that is on its way, which then has
# no answer.
KEEP_S = 3600


def gunicorn(application: str, port: int, words: list[str], layout: Layout) -> str:
    """gunicorn's settings, in Python; the application parses `words` as its command line."""
    options = {"wsgi_app": application, "bind": f"{HERE}:{port}", "workers": 1, "threads": 8,
               "worker_class": "gthread", "timeout": 300, "graceful_timeout": 3, "keepalive": KEEP_S,
               "worker_tmp_dir": str(layout.home), "control_socket_disable": True}
    return "".join([GUNICORN, f"words = {words!r}\n",
                    *(f"{key} = {value!r}\n" for key, value in options.items())])
