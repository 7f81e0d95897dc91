"""A stand-in for OpenStack: the parts of the APIs of Keystone, Nova, Glance, Cinder and Neutron that the
client uses. It boots nothing; tests/lab has a real one."""

import json
import re
import sys
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSWORD = "right"
LIMITS = {"maxTotalInstances": 10, "totalInstancesUsed": 0, "maxTotalCores": 20, "totalCoresUsed": 0,
          "maxTotalRAMSize": -1, "totalRAMUsed": 0}
VOLUME_LIMITS = {"maxTotalVolumes": 10, "totalVolumesUsed": 0, "maxTotalVolumeGigabytes": 100,
                 "totalGigabytesUsed": 0}
SERVICES = {"compute": "/compute/v2.1", "image": "/image", "block-storage": "/volume/v3",
            "network": "/network", "identity": "/v3"}


class Refused(Exception):
    def __init__(self, code, message):
        self.code, self.message = code, message


class Cloud:
    """Resources by kind and id. `calls`: (method, path) of all requests."""

    def __init__(self):
        self.url, self.calls, self.bodies = "", [], []
        self.servers, self.volumes, self.images, self.keys = {}, {}, {}, {}
        self.flavors = {"1": {"id": "1", "name": "m1.small", "vcpus": 1, "ram": 128, "disk": 2},
                        "9": {"id": "9", "name": "huge", "vcpus": 16, "ram": 1 << 20, "disk": 2}}
        self.networks = [{"id": "n1", "name": "private", "router:external": False},
                         {"id": "n2", "name": "outside", "router:external": True}]
        self.limits, self.slow_boot = dict(LIMITS), 0
        self.lists_faults = True    # API versions before 2.96 show a fault only in the query of one server

    def answer(self, method, path, query, body, headers):
        """(code, body, headers) of the first route that matches."""
        for wanted, pattern, route in ROUTES:
            match = wanted == method and re.fullmatch(pattern, path)
            if match:
                return route(self, *match.groups(), query=query, body=body, headers=headers)
        raise Refused(404, f"no route {method} {path}")

    def token(self, *, body, **_):
        if body["auth"]["identity"]["password"]["user"]["password"] != PASSWORD:
            raise Refused(401, "The request you have made requires authentication.")
        catalog = [{"type": kind, "name": kind, "id": kind, "endpoints": [
            {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "id": kind,
             "url": self.url + path}]} for kind, path in SERVICES.items()]
        return 201, {"token": {
            "methods": ["password"], "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z", "catalog": catalog, "roles": [],
            "project": {"id": "p", "name": "p", "domain": {"id": "default", "name": "Default"}},
            "user": {"id": "u", "name": "u", "domain": {"id": "default", "name": "Default"}}}}, {
                "X-Subject-Token": "token"}

    def version(self, *, where="", **_):
        return 200, {"version": {"id": "v2.1", "status": "CURRENT", "version": "2.96",
                                 "max_version": "2.96", "min_version": "2.1",
                                 "links": [{"rel": "self", "href": f"{self.url}/compute/v2.1/"}]}}, {}

    def boot(self, *, body, **_):
        requested = body["server"]
        flavor = self.flavors[requested["flavorRef"]]
        count = requested["min_count"]
        if self.limits.get("enforce") and flavor["vcpus"] * count > self.limits["maxTotalCores"]:
            raise Refused(403, "Quota exceeded for cores: Requested 99, but already used 0 of 20")
        made = [self._server(requested, flavor, i, count) for i in range(count)]
        return 202, {"server": {"id": made[0]["id"], "links": []}}, {}

    def _server(self, requested, flavor, i, count):
        made = {"id": str(uuid.uuid4()), "metadata": requested["metadata"], "status": "BUILD", "looks": 0,
                "name": requested["name"] + (f"-{i + 1}" if count > 1 else ""), "flavor": flavor,
                "addresses": {}, "huge": flavor["name"] == "huge", "key_name": requested.get("key_name")}
        self.servers[made["id"]] = made
        return made

    def list_servers(self, *, query, **_):
        for one in self.servers.values():
            one["looks"] += 1
            if one["status"] == "BUILD" and one["looks"] > self.slow_boot:
                one["status"] = "ERROR" if one["huge"] else "ACTIVE"
                if one["huge"]:
                    one["fault"] = {"code": 500, "message": "No valid host was found. There are not enough"}
                else:
                    one["OS-SRV-USG:launched_at"] = "2026-11-22T01:02:03.000000"
                    one["addresses"] = {"private": [{"version": 4, "addr": "10.0.0.5",
                                                     "OS-EXT-IPS:type": "fixed"},
                                                    {"version": 4, "addr": "192.0.2.5",
                                                     "OS-EXT-IPS:type": "floating"}]}
        return 200, {"servers": [
            {key: value for key, value in one.items() if self.lists_faults or key != "fault"}
            for one in self.servers.values() if re.search(query.get("name", ""), one["name"])]}, {}

    def act(self, server, *, body, **_):
        if "createImage" in body:
            made = str(uuid.uuid4())
            self.images[made] = {"id": made, "status": "active", "size": 1, **body["createImage"]}
            return 202, {"image_id": made}, {}
        if "os-getConsoleOutput" in body:
            return 200, {"output": "a\nKernel panic\n"}, {}
        return 202, None, {}

    def attach(self, server, *, body, **_):
        requested = body["volumeAttachment"]
        at = {"server_id": server, "device": requested.get("device") or "/dev/vdb"}
        self.volumes[requested["volumeId"]] |= {"status": "in-use", "attachments": [at]}
        return 200, {"volumeAttachment": {**requested, "id": requested["volumeId"]}}, {}

    def detach(self, server, volume, **_):
        self.volumes[volume] |= {"status": "available", "attachments": []}
        return 202, None, {}

    def make_volume(self, *, body, **_):
        made = {"id": str(uuid.uuid4()), "status": "available", "attachments": [], **body["volume"]}
        self.volumes[made["id"]] = made
        return 202, {"volume": made}, {}

    def make_image(self, *, body, **_):
        made = {"id": str(uuid.uuid4()), "status": "queued", **body}
        self.images[made["id"]] = made
        return 201, made, {}

    def put_image(self, image, *, body, **_):
        self.images[image] |= {"status": "active", "size": len(body)}
        return 204, None, {}

    def make_key(self, *, body, **_):
        self.keys[body["keypair"]["name"]] = body["keypair"]
        return 200, {"keypair": body["keypair"]}, {}

    def drop(self, kind, thing, **_):
        name = {"servers": "servers", "os-keypairs": "keys", "flavors": "flavors"}.get(kind, kind)
        there = getattr(self, name)
        if thing not in there:
            raise Refused(404, "not found")
        if name == "volumes" and there[thing]["attachments"]:
            raise Refused(400, "Invalid volume: Volume status must be available")
        if name == "servers":
            for volume in self.volumes.values():
                if any(at["server_id"] == thing for at in volume["attachments"]):
                    volume |= {"status": "available", "attachments": []}
        del there[thing]
        return 204, None, {}


def listed(kind, attribute, wrap=lambda one: one):
    return lambda cloud, **_: (200, {kind: [wrap(one) for one in getattr(cloud, attribute).values()]}, {})


def one_of(attribute, wrap=None):
    def route(cloud, thing, **_):
        there = getattr(cloud, attribute)
        if thing not in there:
            raise Refused(404, "not found")
        return 200, {wrap: there[thing]} if wrap else there[thing], {}
    return route


def identity(cloud, **_):
    return 200, {"version": {"id": "v3.14", "status": "stable", "links": [
        {"rel": "self", "href": f"{cloud.url}/v3/"}], "media-types": []}}, {}


def versions(path, number):
    def route(cloud, **_):
        return 200, {"versions": [{"id": f"v{number}", "status": "CURRENT", "links": [
            {"rel": "self", "href": cloud.url + path}]}]}, {}
    return route


ROUTES = [
    ("GET", "/v3/?", identity), ("POST", "/v3/auth/tokens", Cloud.token),
    ("GET", "/compute/v2.1/?", Cloud.version),
    ("GET", "/image/?", versions("/image/v2/", "2.9")),
    ("GET", "/network/?", versions("/network/v2.0/", "2.0")),
    ("GET", "/volume/v3/?", versions("/volume/v3/", "3.70")),
    ("GET", "/compute/v2.1/flavors(?:/detail)?", listed("flavors", "flavors")),
    ("GET", "/compute/v2.1/servers(?:/detail)?", Cloud.list_servers),
    ("GET", "/compute/v2.1/servers/([^/]+)", one_of("servers", "server")),
    ("GET", "/compute/v2.1/limits", lambda c, **_: (
        200, {"limits": {"absolute": c.limits, "rate": []}}, {})),
    ("GET", "/volume/v3/limits", lambda c, **_: (
        200, {"limits": {"absolute": VOLUME_LIMITS, "rate": []}}, {})),
    ("GET", "/network/v2.0/networks", lambda c, **_: (200, {"networks": c.networks}, {})),
    ("POST", "/compute/v2.1/servers", Cloud.boot),
    ("POST", "/compute/v2.1/servers/([^/]+)/action", Cloud.act),
    ("POST", "/compute/v2.1/servers/([^/]+)/os-volume_attachments", Cloud.attach),
    ("DELETE", "/compute/v2.1/servers/([^/]+)/os-volume_attachments/([^/]+)", Cloud.detach),
    ("GET", "/compute/v2.1/os-keypairs", listed("keypairs", "keys", lambda one: {"keypair": one})),
    ("POST", "/compute/v2.1/os-keypairs", Cloud.make_key),
    ("GET", "/volume/v3/volumes(?:/detail)?", listed("volumes", "volumes")),
    ("POST", "/volume/v3/volumes", Cloud.make_volume),
    ("GET", "/image/v2/images", listed("images", "images")),
    ("GET", "/image/v2/images/([^/]+)", one_of("images")),
    ("POST", "/image/v2/images", Cloud.make_image),
    ("PUT", "/image/v2/images/([^/]+)/file", Cloud.put_image),
    ("DELETE", "/(?:compute/v2.1|volume/v3|image/v2)/([a-z-]+)/([^/]+)", Cloud.drop),
]


@contextmanager
def openstack(address="127.0.0.1", port=0):
    """The Cloud, served at its `url`."""
    cloud = Cloud()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self):
            path, _, text = self.path.partition("?")
            query = dict(pair.partition("=")[::2] for pair in text.split("&") if pair)
            cloud.calls.append((self.command, path))
            raw = self._body()
            is_json = "octet" not in self.headers.get("Content-Type", "json")
            body = json.loads(raw) if raw and is_json else raw
            cloud.bodies.append(body)
            try:
                code, body, headers = cloud.answer(self.command, path, query, body, self.headers)
            except Refused as error:
                code, headers = error.code, {}
                body = {"error": {"code": error.code, "message": error.message}}
            self._respond(code, body, headers)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one

        def _body(self):
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def _respond(self, code, body, headers):
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(code)
            for name, value in {**headers, "Content-Type": "application/json",
                                "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer((address, port), Handler)
    cloud.url = f"http://{address}:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":      # of a lab host: its address and a port
    with openstack(sys.argv[1], int(sys.argv[2])):
        threading.Event().wait()
