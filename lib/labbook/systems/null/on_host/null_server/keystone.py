"""The part of Keystone's identity API with which clients create projects and users and list users; any login is valid.

Each answer closes its connection, as the answers of Keystone's workers do. The body of a request is
not read.
"""

import json

USERS = 1000
ID = "0123456789abcdef0123456789abcdef"
WHEN = "2000-01-01T00:00:00.000000Z"
NEVER = "2999-12-31T23:59:59.000000Z"
OK, CREATED, CHOICES, ABSENT = (b"200 OK", b"201 Created", b"300 Multiple Choices",
                                b"404 Not Found")


def answers(_value_of):
    known = {}

    def answer(message: bytes) -> bytes:
        if message.startswith(b"{"):
            return b""
        verb, path, _ = message.split(b" ", 2)
        host = _host(message)
        request = verb, path.partition(b"?")[0].rstrip(b"/"), host
        if request not in known:
            known[request] = reply(*route(verb.decode(), request[1].decode(), f"http://{host.decode()}"))
        return known[request]

    return b"", answer


def route(verb: str, path: str, root: str) -> tuple[bytes, dict]:
    """Status and body of the answer; LookupError for an unknown call."""
    version = {"id": "v3.14", "status": "stable", "updated": WHEN,
               "links": [{"rel": "self", "href": f"{root}/v3/"}],
               "media-types": [{"base": "application/json",
                                "type": "application/vnd.openstack.identity-v3+json"}]}
    domain = {"id": "default", "name": "Default", "enabled": True, "description": "",
              "tags": [], "options": {}, "links": {"self": f"{root}/v3/domains/default"}}
    return {
        ("GET", ""): lambda: (CHOICES, {"versions": {"values": [version]}}),
        ("GET", "/v3"): lambda: (OK, {"version": version}),
        ("POST", "/v3/auth/tokens"): lambda: (CREATED, {"token": token(root)}),
        ("GET", "/v3/domains"): lambda: (OK, {"domains": [domain], "links": links(root, "domains")}),
        ("GET", "/v3/domains/Default"): lambda: (ABSENT, absent("domain: Default")),
        ("GET", "/v3/domains/default"): lambda: (OK, {"domain": domain}),
        ("POST", "/v3/projects"): lambda: (CREATED, {"project": project(root)}),
        ("POST", "/v3/users"): lambda: (CREATED, {"user": user(root, 0)}),
        ("GET", f"/v3/users/{0:032x}"): lambda: (OK, {"user": user(root, 0)}),
        ("GET", "/v3/users"): lambda: (OK, {"users": [user(root, i) for i in range(USERS)],
                                            "links": links(root, "users")}),
    }[verb, path]()


def token(root: str) -> dict:
    domain = {"id": "default", "name": "Default"}
    endpoints = [{"id": ID, "interface": interface, "region": "null", "region_id": "null",
                  "url": f"{root}/v3"} for interface in ("public", "internal", "admin")]
    return {"methods": ["password"], "user": {"id": ID, "name": "admin", "domain": domain,
                                              "password_expires_at": None},
            "audit_ids": [ID[:22]], "issued_at": WHEN, "expires_at": NEVER, "is_domain": False,
            "project": {"id": ID, "name": "admin", "domain": domain},
            "roles": [{"id": ID, "name": "admin"}],
            "catalog": [{"id": ID, "type": "identity", "name": "keystone",
                         "endpoints": endpoints}]}


def absent(what: str) -> dict:
    return {"error": {"code": 404, "title": "Not Found", "message": f"Could not find {what}."}}


def project(root: str) -> dict:
    return {"id": ID, "name": "project", "domain_id": "default", "enabled": True, "is_domain": False,
            "parent_id": "default", "description": "", "tags": [], "options": {},
            "links": {"self": f"{root}/v3/projects/{ID}"}}


def user(root: str, number: int) -> dict:
    identity = f"{number:032x}"
    return {"id": identity, "name": f"user{number:04d}", "domain_id": "default", "enabled": True,
            "default_project_id": ID, "password_expires_at": None, "options": {},
            "links": {"self": f"{root}/v3/users/{identity}"}}


def links(root: str, what: str) -> dict:
    return {"self": f"{root}/v3/{what}", "previous": None, "next": None}


def reply(status: bytes, body: dict) -> bytes:
    text = json.dumps(body).encode()
    return (b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"X-Subject-Token: null\r\nVary: X-Auth-Token\r\nConnection: close\r\n\r\n%b"
            % (status, len(text), text))


def _host(message: bytes) -> bytes:
    """The host that the client named, which links in the answer must repeat."""
    name = b"\r\nhost: "
    first = message.lower().index(name) + len(name)
    return message[first:message.index(b"\r\n", first)]
