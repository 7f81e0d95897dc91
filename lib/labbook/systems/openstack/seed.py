"""The seed databases of a platform, made once for each release and cached; every platform starts from a copy."""

import hashlib
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from labbook.errors import SystemFailure
from labbook.lab.cache.build import build_once
from labbook.lab.cache.push import push
from labbook.lab.ssh.transfer import say
from labbook.systems.cloud.model import PAPER_FLAVORS
from labbook.systems.cloud.openstack_session import connect_through, translate_errors
from labbook.systems.cluster import in_parallel
from labbook.systems.keystone.config import ADMIN, DOMAIN
from labbook.systems.openstack import services
from labbook.systems.openstack.config import HERE, REGION
from labbook.systems.openstack.hypervisor import GATEWAY, POOL, SUBNET
from labbook.systems.openstack.releases import COMPUTE, PARTS, PORTS
from labbook.systems.sql import MARIADBD, fetch_data, owners_alone

RECIPE = 2      # version of what is made here; a new number makes new seeds
DATA, CONTENTS, NODE = "data", "contents.json", "compute_id"    # in a seed's folder
UP_SECONDS = 120
NOT_COPIED = ("ibtmp1", "ib_buffer_pool")
ENDPOINTS = {  # part: (type, path)
    "glance": ("image", ""), "placement": ("placement", ""), "nova": ("compute", "/v2.1"),
    "neutron": ("network", ""), "cinder": ("volumev3", "/v3/%(project_id)s"),
}
# The serial console is what the API shows; no other is waited for.
COMMAND_LINE = "console=ttyS0 quiet no_timer_check tsc=reliable mitigations=off net.ifnames=0"
DEVICES = {"hw_cdrom_bus": "scsi", "hw_scsi_model": "virtio-scsi", "hw_rng_model": "virtio"}
OF_MACHINES = ("kernel_id", "ramdisk_id", "os_command_line", *DEVICES)     # of an image's properties
JSON_PATCH = "application/openstack-images-v2.1-json-patch"
UPLOAD = """import http.client, os, sys
image, port, token = sys.argv[1], int(sys.argv[2]), open(sys.argv[4]).read()
with open(sys.argv[3], "rb") as file:
    call = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    call.request("PUT", f"/v2/images/{image}/file", file, {
        "X-Auth-Token": token, "Content-Type": "application/octet-stream",
        "Content-Length": str(os.path.getsize(sys.argv[3]))})
    answer = call.getresponse()
    print(answer.status, answer.read(300))
"""
UPLOAD_SECONDS = 600


@dataclass(frozen=True)
class Seed:
    """A folder of the cache with the stopped database's data and a list of their contents."""

    folder: Path

    @property
    def contents(self) -> dict:
        """network: its id. images: {id: file name in the guest's folder}."""
        return json.loads((self.folder / CONTENTS).read_text())


def databases(platform, guest) -> Seed:
    """The release's seed with the guest's images, made on the platform's hosts if it is not cached."""
    host = platform.host
    debians = "" if platform.release.python else (      # else the release's recipe has its versions
        "; dpkg-query -W 'python3-nova' 'python3-*' 2> /dev/null | "
        "grep -E 'nova|keystone|glance|neutron|cinder|placement'; true")
    versions = host.run(f"{MARIADBD} --version{debians}").stdout
    recipe = (RECIPE, platform.release.recipe, versions, guest.name, platform.secrets.digest,
              str(platform.layout.home))
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:10]
    return Seed(owners_alone(build_once(f"openstack-{platform.release.name}-{digest}",
                                        lambda folder: _fill(folder, platform, guest))))


def plant(platform, guest, seed: Seed) -> None:
    """Give the deployed platform the seed's image files and compute node id."""
    images = push(platform.host, guest.folder)
    links = [f"ln -sf {images}/{name} {platform.layout.home}/images/{one}"
             for one, name in seed.contents["images"].items()]
    platform.host.run(" && ".join(links))
    if (seed.folder / NODE).exists():
        platform.host.put((seed.folder / NODE).read_text(), platform.layout.home / "nova" / NODE)


def data(platform, seed: Seed):
    """Path of the database's data on the platform's host."""
    return push(platform.host, seed.folder) / DATA


def connection(platform):
    """openstacksdk's connection as the administrator."""
    return connect_through(platform.host, password=platform.secrets.password, **administrator())


def administrator() -> dict:
    """How openstacksdk logs in as the administrator, without the password."""
    return {"auth_url": f"http://{HERE}:{PORTS['keystone']}/v3", "username": ADMIN, "project_name": ADMIN,
            "user_domain_name": DOMAIN, "project_domain_name": DOMAIN}


def await_workers(platform, cloud, since: float, seconds=UP_SECONDS) -> None:
    """Wait until the workers of Nova and Cinder have reported after `since` (epoch seconds).

    Reports from before the database was copied do not count. SystemFailure with the log's end of a
    worker that has ended or does not report.
    """
    wanted = {("nova-conductor", ""), ("nova-scheduler", ""), ("cinder-scheduler", ""), ("cinder-volume", ""), *(
        (COMPUTE, node) for node in [one.name for one in platform.computes] or [platform.layout.node])}
    until = time.monotonic() + seconds
    while True:
        there = [*cloud.compute.services(), *cloud.block_storage.services()]
        missing = wanted - {(one.binary, one.host if one.binary == COMPUTE else "") for one in there
                            if one.state == "up" and _epoch(one.updated_at) > since}
        if not missing:
            return
        _require_alive(platform, {name for name, _ in missing})
        if time.monotonic() > until:
            name = sorted(missing)[0][0]
            raise SystemFailure(f"{platform.host.name}: waited for {name} to report: not within "
                                f"{seconds:g} s", log=platform.log_tail(name))
        time.sleep(0.3)


def retire_others(cloud, computes: set[str]) -> None:
    """Have the scheduler place no server on a machine that is none of these: that on which the seed was made counts as
    up for a minute more."""
    for service in cloud.compute.services(binary=COMPUTE):
        if service.host not in computes:
            cloud.compute.disable_service(service)


def _require_alive(platform, names) -> None:
    """SystemFailure with the log's end of the first of these services whose process has ended."""
    for host, service in platform.services():
        if service.name in names and (process := host.process(service.process)) and not process.alive():
            raise SystemFailure(f"{host.name}: {service.name} ended with exit code {process.exit_code()}",
                                log=process.log_tail())


def _epoch(text) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() if text else 0


@contextmanager
def failing_with_log(platform, doing: str):
    """A context in which openstacksdk's errors become SystemFailures with the services' last errors."""
    try:
        with translate_errors(doing, None):
            yield
    except SystemFailure as error:
        error.log = error.log or platform.complaints()
        raise


def _fill(folder: Path, platform, guest):
    say(f"making the databases of OpenStack {platform.release.name}, once")
    began = time.monotonic()
    try:
        with failing_with_log(platform, "be made"):
            _make(folder, platform, guest)
    finally:
        platform.destroy()
    say(f"made in {time.monotonic() - began:.0f} s")


def _make(folder, platform, guest):
    platform.destroy()
    platform.deploy()
    platform.start_backends()
    for name in services.DATABASES:
        platform.database.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb3")
    in_parallel(PARTS, lambda part: [platform.manage(line) for line in services.making(platform.layout, part)],
         at_failure=platform.database.process.kill)     # otherwise the other parts would finish theirs
    _bootstrap(platform)
    platform.await_answers(platform.begin("keystone-api"))
    cloud = connection(platform)
    fill_identity(cloud, platform.secrets.password)
    cloud.close()
    cloud = connection(platform)    # a new catalogue with the other services
    since = time.time()
    platform.start(running=["keystone-api"])
    contents = fill_services(platform, cloud, guest)
    await_workers(platform, cloud, since)
    platform.manage(services.discovering(platform.layout))
    (folder / CONTENTS).write_text(json.dumps(contents))
    node = platform.host.run(f"cat {platform.layout.home}/nova/{NODE}", check=False).stdout
    if node:
        (folder / NODE).write_text(node)
    cloud.close()
    platform.stop()
    database = platform.database
    fetch_data(database.host, database.home / "data", folder / DATA, NOT_COPIED)


def _bootstrap(platform):
    line = services.config.entry(platform.layout, "keystone-manage", "keystone.cmd.manage:main", "keystone")
    url = f"http://{HERE}:{PORTS['keystone']}/v3"
    # read on the host, so that `ps` does not show it
    platform.manage(f"export OS_BOOTSTRAP_PASSWORD=$(cat {platform.layout.home}/keys/password) && "
                    f"{line} bootstrap --bootstrap-public-url {url} --bootstrap-region-id RegionOne")


def fill_identity(cloud, password: str) -> None:
    """Create each service's user, who may act for users, and its endpoint."""
    identity = cloud.identity
    roles = {role.name: role for role in identity.roles()}
    if "service" not in roles:
        roles["service"] = identity.create_role(name="service")
    project = identity.create_project(name="service", domain_id="default")
    for part, (kind, path) in ENDPOINTS.items():
        user = identity.create_user(name=part, password=password, domain_id="default",
                                    default_project_id=project.id)
        for role in ("admin", "service"):
            identity.assign_project_role_to_user(project, user, roles[role])
        service = identity.create_service(name="cinderv3" if part == "cinder" else part, type=kind)
        identity.create_endpoint(service_id=service.id, interface="public", region_id=REGION,
                                 url=f"http://{HERE}:{PORTS[part]}{path}")


def fill_services(platform, cloud, guest) -> dict:
    """Create VM types, the network and images; returns Seed.contents."""
    for flavor in PAPER_FLAVORS:
        cloud.compute.create_flavor(name=flavor.name, vcpus=flavor.cores, ram=flavor.memory_mb,
                                    disk=flavor.disk_gb)
    network = cloud.network.create_network(name="guests", shared=True)
    cloud.network.create_subnet(network_id=network.id, name="guests", ip_version=4, cidr=SUBNET,
                                gateway_ip=GATEWAY, is_dhcp_enabled=False,
                                allocation_pools=[{"start": POOL[0], "end": POOL[1]}])
    return {"network": network.id, "images": _images(platform, cloud, guest)}


def _images(platform, cloud, guest) -> dict:
    """Create kernel, ramdisk and the images of all sizes; {id: file name in the guest's folder}."""
    kernel = _image(platform, cloud, guest, "guest-kernel", "vmlinuz", "aki")
    ramdisk = _image(platform, cloud, guest, "guest-ramdisk", "ramdisk", "ari")
    found = {kernel: "vmlinuz", ramdisk: "ramdisk"}
    boot = {"kernel_id": kernel, "ramdisk_id": ramdisk, "os_command_line": COMMAND_LINE, **DEVICES}
    files = sorted(guest.folder.glob("guest-*gb.raw"), key=lambda file: file.stat().st_size)
    for name, file in [("guest", files[0]), *((file.stem, file) for file in files)]:
        found[_image(platform, cloud, guest, name, file.name, "raw", boot)] = file.name
    return found


def add_words(cloud, words: str) -> None:
    """Add words to the kernel's command line of all images that have one."""
    for image in cloud.image.images():
        if image.os_command_line:
            cloud.image.update_image(image, os_command_line=f"{image.os_command_line} {words}")


def without_devices(cloud) -> None:
    """Have all images boot as containers: without kernel, ramdisk, and the devices of a machine."""
    for image in cloud.image.images():
        if image.os_command_line:
            cloud.image.patch(f"/images/{image.id}", headers={"Content-Type": JSON_PATCH}, json=[
                {"op": "remove", "path": f"/{name}"} for name in OF_MACHINES])


def _image(platform, cloud, guest, name, file, disk_format, more=None) -> str:
    """Create one image and upload its file on the host; returns its id."""
    container = disk_format if disk_format != "raw" else "bare"
    answer = cloud.image.post("/images", json={
        "name": name, "disk_format": disk_format, "container_format": container, "visibility": "public",
        **(more or {})})
    if answer.status_code != 201:
        raise SystemFailure(f"{platform.host.name}: Glance makes no image {name}: {answer.text[:300]}",
                            log=platform.log_tail("glance-api"))
    made = answer.json()["id"]
    place, token = push(platform.host, guest.folder) / file, platform.layout.home / "keys" / "token"
    platform.host.put(cloud.auth_token, token, 0o600)   # read on the host, so that `ps` does not show it
    output = platform.host.run(f"{platform.host.python} -I -S - {made} {PORTS['glance']} {place} {token} <<'E'\n"
                             f"{UPLOAD}E", timeout=UPLOAD_SECONDS).stdout
    if not output.startswith("204"):
        raise SystemFailure(f"{platform.host.name}: Glance did not take {name}: {output.strip()}",
                            log=platform.log_tail("glance-api"))
    return made
