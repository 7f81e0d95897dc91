"""What a platform has from the start: services' users and endpoints, VM types, a network, the guest's
images. All is made through the APIs, as an operator's would be."""

from labbook.errors import SystemFailure
from labbook.lab.cache.push import bring
from labbook.systems.cloud.model import PAPER_FLAVORS
from labbook.systems.openstack.config import HERE, REGION
from labbook.systems.openstack.hypervisor import GATEWAY, POOL, SUBNET
from labbook.systems.openstack.releases import PORTS

ENDPOINTS = {  # part: (type, path)
    "glance": ("image", ""), "placement": ("placement", ""), "nova": ("compute", "/v2.1"),
    "neutron": ("network", ""), "cinder": ("volumev3", "/v3/%(project_id)s"),
}
# The guest's serial console is what the API shows; nothing else is waited for or told.
COMMAND_LINE = "console=ttyS0 quiet no_timer_check tsc=reliable mitigations=off net.ifnames=0"
DEVICES = {"hw_cdrom_bus": "scsi", "hw_scsi_model": "virtio-scsi", "hw_rng_model": "virtio"}
UPLOAD = """import http.client, os, sys
place, port, token = sys.argv[1], int(sys.argv[2]), open(sys.argv[4]).read()
with open(sys.argv[3], "rb") as file:
    call = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    call.request("PUT", f"/v2/images/{place}/file", file, {
        "X-Auth-Token": token, "Content-Type": "application/octet-stream",
        "Content-Length": str(os.path.getsize(sys.argv[3]))})
    answer = call.getresponse()
    print(answer.status, answer.read(300))
"""
UPLOAD_SECONDS = 600


def fill_identity(cloud, password: str) -> None:
    """A user for each service, who may ask others in the users' names; where each is to be found."""
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


def fill_rest(platform, cloud, guest) -> dict:
    """What Seed.told tells."""
    for flavor in PAPER_FLAVORS:
        cloud.compute.create_flavor(name=flavor.name, vcpus=flavor.cores, ram=flavor.memory_mb,
                                    disk=flavor.disk_gb)
    network = cloud.network.create_network(name="guests", shared=True)
    cloud.network.create_subnet(network_id=network.id, name="guests", ip_version=4, cidr=SUBNET,
                                gateway_ip=GATEWAY, is_dhcp_enabled=False,
                                allocation_pools=[{"start": POOL[0], "end": POOL[1]}])
    return {"network": network.id, "images": _images(platform, cloud, guest)}


def _images(platform, cloud, guest) -> dict:
    """{id: file name of the guest's} of kernel, ramdisk and the images of all sizes."""
    kernel = _image(platform, cloud, guest, "guest-kernel", "vmlinuz", "aki")
    ramdisk = _image(platform, cloud, guest, "guest-ramdisk", "ramdisk", "ari")
    found = {kernel: "vmlinuz", ramdisk: "ramdisk"}
    boot = {"kernel_id": kernel, "ramdisk_id": ramdisk, "os_command_line": COMMAND_LINE, **DEVICES}
    files = sorted(guest.folder.glob("guest-*gb.raw"), key=lambda file: file.stat().st_size)
    for name, file in [("guest", files[0]), *((file.stem, file) for file in files)]:
        found[_image(platform, cloud, guest, name, file.name, "raw", boot)] = file.name
    return found


def _image(platform, cloud, guest, name, file, disk_format, more=None) -> str:
    """Its id; the file is sent on the host itself."""
    container = disk_format if disk_format != "raw" else "bare"
    answer = cloud.image.post("/images", json={
        "name": name, "disk_format": disk_format, "container_format": container, "visibility": "public",
        **(more or {})})
    if answer.status_code != 201:
        raise SystemFailure(f"{platform.host.name}: Glance makes no image {name}: {answer.text[:300]}",
                            log=platform.log_tail("glance-api"))
    made = answer.json()["id"]
    place, token = bring(platform.host, guest.folder) / file, platform.place.home / "keys" / "token"
    platform.host.put(cloud.auth_token, token, 0o600)   # read there, so that no `ps` shows it
    said = platform.host.run(f"{platform.host.python} -I -S - {made} {PORTS['glance']} {place} {token} <<'E'\n"
                             f"{UPLOAD}E", timeout=UPLOAD_SECONDS).stdout
    if not said.startswith("204"):
        raise SystemFailure(f"{platform.host.name}: Glance did not take {name}: {said.strip()}",
                            log=platform.log_tail("glance-api"))
    return made
