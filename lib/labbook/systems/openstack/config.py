"""The services' own files, as pure functions from the Place that they are in."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from labbook.systems.openstack import paste as openstack_paste
from labbook.systems.openstack.releases import PORTS

HERE = "127.0.0.1"          # all of a platform but its volumes is on one host, and calls itself so
DOMAIN = {"user_domain_id": "default", "project_domain_id": "default"}
REGION = "RegionOne"
BROKER_USER, BROKER_PORT = "openstack", 5672
DATABASE_USER = "labbook"   # systems/sql_server.py's, without a password
NO_LIMIT = 100_000
QUIET = ",".join(f"{name}=ERROR" for name in (
    "amqp", "neutronclient", "os_brick", "oslo_policy", "py.warnings", "stevedore"))


@dataclass(frozen=True)
class Place:
    """`home`: the folder of one host's part of the platform. `control`: the data address of the host
    that database and broker are on. `python`: words that run the release's Python there."""

    home: PurePosixPath
    control: str
    password: str
    python: str
    cache_mode: str = "none"
    virt_type: str = "qemu"
    node: str = "cloud"
    plug: str = "tap"

    def database(self, name: str) -> str:
        return f"mysql+pymysql://{DATABASE_USER}:@{self.control}:3306/{name}"

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


def files(place: Place) -> dict[str, str]:
    """{path below the home: text} of all that the services read."""
    texts = {f"etc/{part}/{CONF[part]}": ini(_common(place, part) | {
        section: _common(place, part).get(section, {}) | options
        for section, options in SECTIONS[part](place).items()}) for part in CONF}
    for part, (name, text) in openstack_paste.FILES.items():
        texts[f"etc/{part}/{name}"] = ini(text())
    return texts


def _common(place, part) -> dict:
    parts = {
        "DEFAULT": {"use_stderr": "true", "transport_url": place.broker, "default_log_levels": QUIET},
        "database": {"connection": place.database(part), "max_retries": 1, "retry_interval": 1},
        "oslo_concurrency": {"lock_path": place.home / "locks"},
        "oslo_messaging_rabbit": {"rabbit_retry_interval": 1, "rabbit_retry_backoff": 1,
                                  "heartbeat_timeout_threshold": 120},
        "oslo_messaging_notifications": {"driver": "noop"},
    }
    if part != "keystone":
        parts["keystone_authtoken"] = {
            **credentials(place, part), "www_authenticate_uri": f"http://{HERE}:{PORTS['keystone']}",
            "interface": "public",
            "service_token_roles": "service", "service_token_roles_required": "true"}
    return parts


def credentials(place, part) -> dict:
    """By which a service calls others."""
    return {"auth_type": "password", "auth_url": f"http://{HERE}:{PORTS['keystone']}/v3",
            "username": part, "password": place.password, "project_name": "service",
            "region_name": REGION, **DOMAIN}


def keystone(place) -> dict:
    keys = place.home / "keys"
    return {
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        "token": {"provider": "fernet", "expiration": 86400},
        "fernet_tokens": {"key_repository": keys / "fernet"},
        "fernet_receipts": {"key_repository": keys / "fernet"},
        "credential": {"key_repository": keys / "credential"},
        "identity": {"password_hash_rounds": 4},
    }


def glance(place) -> dict:
    store = place.home / "images"
    return {
        "DEFAULT": {"bind_host": HERE, "bind_port": PORTS["glance"], "workers": 1,
                    "enabled_backends": "files:file", "enabled_import_methods": "[]",
                    "worker_self_reference_url": f"http://{HERE}:{PORTS['glance']}"},
        "glance_store": {"default_backend": "files"},
        "files": {"filesystem_store_datadir": store},
        "os_glance_staging_store": {"filesystem_store_datadir": place.home / "staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": place.home / "tasks"},
        "image_format": {"require_image_format_match": "false"},    # a kernel is taken for a disk
        "paste_deploy": {"flavor": "keystone",
                         "config_file": place.etc("glance") / "glance-api-paste.ini"},
    }


def placement(place) -> dict:
    return {"placement_database": {"connection": place.database("placement")},
            "api": {"auth_strategy": "keystone"}}


def nova(place) -> dict:
    return {
        "DEFAULT": {
            "host": place.node, "my_ip": HERE, "state_path": place.home / "nova",
            "instances_path": place.home / "instances", "compute_driver": "libvirt.LibvirtDriver",
            "osapi_compute_listen": HERE, "osapi_compute_workers": 1,
            # each server has a whole copy of its image: the way whose speed the report measured
            "use_cow_images": "false",
            "force_config_drive": "true", "mkisofs_cmd": "genisoimage",
            # nothing plugs ports that could tell of it
            "vif_plugging_timeout": 0, "vif_plugging_is_fatal": "false",
            "cpu_allocation_ratio": 16, "ram_allocation_ratio": 4, "disk_allocation_ratio": 100,
            "reserved_host_memory_mb": 512, "reserved_host_disk_mb": 0,
            "report_interval": 5, "service_down_time": 60, "running_deleted_instance_action": "noop",
        },
        "database": {"connection": place.database("nova")},
        "api_database": {"connection": place.database("nova_api")},
        "wsgi": {"api_paste_config": place.etc("nova") / "api-paste.ini"},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": -1},
        "image_cache": {"remove_unused_base_images": "false", "manager_interval": -1},
        "glance": {"endpoint_override": f"http://{HERE}:{PORTS['glance']}", "num_retries": 2},
        "placement": credentials(place, "placement"),
        "neutron": credentials(place, "neutron"),
        "cinder": {"os_region_name": REGION, "catalog_info": "volumev3::publicURL"},
        "service_user": {"send_service_user_token": "true", **credentials(place, "nova")},
        "libvirt": {
            "virt_type": place.virt_type, "images_type": "raw", "inject_partition": -2,
            "snapshot_image_format": "qcow2",   # without the blocks that nobody wrote
            "connection_uri": libvirt_uri(place), "wait_soft_reboot_seconds": 10,
            "disk_cachemodes": ",".join(f"{kind}={place.cache_mode}" for kind in ("file", "network"))},
        "vnc": {"enabled": "false"}, "spice": {"enabled": "false"},
        "quota": {"instances": NO_LIMIT, "cores": NO_LIMIT, "ram": -1},
        **helpers(place, "nova", "nova_sys_admin", "vif_plug_ovs_privileged",
                  "vif_plug_linux_bridge_privileged", "privsep_osbrick"),
    }


def neutron(place) -> dict:
    return {
        "DEFAULT": {
            "bind_host": HERE, "bind_port": PORTS["neutron"], "core_plugin": "ml2", "service_plugins": "",
            "auth_strategy": "keystone", "state_path": place.home / "neutron",
            "api_paste_config": place.etc("neutron") / "api-paste.ini",
            "api_workers": 0, "rpc_workers": 0, "rpc_state_report_workers": 0,
            "notify_nova_on_port_status_changes": "false", "notify_nova_on_port_data_changes": "false",
            "dhcp_agent_notification": "false"},
        "ml2": {"type_drivers": "local", "tenant_network_types": "local",
                "mechanism_drivers": f"labbook_{place.plug}"},
        "quotas": {"quota_port": -1, "quota_network": -1, "quota_subnet": -1},
    }


def cinder(place) -> dict:
    return {
        "DEFAULT": {
            "osapi_volume_listen": HERE, "osapi_volume_workers": 1, "auth_strategy": "keystone",
            "state_path": place.home / "cinder", "api_paste_config": place.etc("cinder") / "api-paste.ini",
            "glance_api_servers": f"http://{HERE}:{PORTS['glance']}", "host": place.node,
            "enabled_backends": "nbd", "quota_volumes": NO_LIMIT, "quota_gigabytes": NO_LIMIT,
            "report_interval": 2},      # and so long until the first report
        "coordination": {"backend_url": f"file://{place.home}/coordination"},
        **helpers(place, "cinder", "cinder_sys_admin", "privsep_osbrick"),
    }


def nbd(place, address: str) -> dict:
    """What the process on the volumes' host reads beside cinder.conf; it serves at `address`."""
    return {"nbd": {
        "volume_driver": "openstack_plugin.volumes.NbdDriver", "volume_backend_name": "nbd",
        "nbd_folder": place.home / "volumes", "nbd_control": place.home / "control",
        "nbd_address": address, "nbd_direct": str(place.cache_mode in ("none", "directsync")).lower()}}


def libvirt_uri(place) -> str:
    return f"qemu+unix:///system?socket={place.home}/libvirt/libvirt-sock"


def helpers(place, part, *sections) -> dict:
    """How a service starts what does for it what only root may."""
    line = entry(place, "privsep-helper", "oslo_privsep.daemon:helper_main", part)
    return {section: {"helper_command": line} for section in sections}


def entry(place, name: str, where: str, part: str) -> str:
    """The command line of a service's own entry."""
    program = place.home / "plugins" / "openstack_plugin" / "service.py"
    return f"{place.python} {program} {name} {where} --config-file {place.file(part)}"


SECTIONS = {"keystone": keystone, "glance": glance, "placement": placement, "nova": nova,
            "neutron": neutron, "cinder": cinder}


# Its worker imports as openstack_plugin/service.py does.
GUNICORN = """import gc
import sys


def post_fork(server, worker):
    sys.argv[:] = words
    gc.disable()


def post_worker_init(worker):
    gc.freeze()
    gc.enable()


"""


def gunicorn(application: str, port: int, words: list[str], place: Place) -> str:
    """Its settings, which are Python; `words` are what the application takes for its command line."""
    options = {"wsgi_app": application, "bind": f"{HERE}:{port}", "workers": 1, "threads": 8,
               "worker_class": "gthread", "timeout": 300, "graceful_timeout": 3,
               "worker_tmp_dir": str(place.home), "control_socket_disable": True}
    return "".join([GUNICORN, f"words = {words!r}\n",
                    *(f"{key} = {value!r}\n" for key, value in options.items())])
