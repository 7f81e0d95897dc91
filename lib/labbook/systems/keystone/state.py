"""A Keystone's content before a measurement (users, projects, revoked tokens), and its seed database.

Content is created through REST, a few requests at a time, as an operator would. Only rows of the
revocation table are deleted in the database, since Keystone has no request for that.
"""

import hashlib
import http.client
import itertools
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

from labbook.errors import InputError, SystemFailure
from labbook.lab.cache.build import build_once
from labbook.lab.ssh.transfer import say
from labbook.systems.cluster import destroy_all
from labbook.systems.galera.node import NOT_COPIED, GaleraNode
from labbook.systems.keystone.config import ADMIN, DATABASE, Secrets
from labbook.systems.keystone.server import PACKAGES, Keystone
from labbook.systems.sql import MARIADBD, fetch_data, owners_alone

PARALLEL = 6
# Writers on several nodes of a cluster may conflict: Keystone then answers 500 or closes the connection.
TRIES = 8
PAUSE_S = 0.05      # before the second try; each further pause is twice as long, all together 6 s
ROWS_PER_TOKEN = 2  # one by the token's audit id, one by that of its chain
TABLE = f"{DATABASE}.revocation_event"
NOT_OF_TOKENS = "audit_id IS NULL AND audit_chain_id IS NULL"  # rows of users that were removed
RECIPE = 1  # version of what `seed` makes beside its arguments; a new number makes new seeds
REPORT_EVERY = 250  # users


def user_name(number: int) -> str:
    return f"user{number:04d}"


def project_name(number: int) -> str:
    return f"project{number:03d}"


def fill(keystone, users: int, projects: int, report=lambda made: None) -> None:
    """Create projects, and users as members, distributed evenly over the projects.

    The users' passwords are random and not recorded. `report(made)` is called after each user with
    the number of users so far.
    """
    if users and not projects:
        raise InputError(f"{users} users need a project", key="projects", allowed="1 and more")
    token = keystone.admin_token()
    roles = ask(keystone, "GET", "/roles?name=member", token=token)["roles"]

    def project(number):
        body = {"name": project_name(number), "domain_id": "default"}
        return ask(keystone, "POST", "/projects", {"project": body}, token)["project"]["id"]

    def user(number):
        home = project_ids[number % projects]
        body = {"name": user_name(number), "domain_id": "default", "default_project_id": home,
                "password": secrets.token_urlsafe()}
        made = ask(keystone, "POST", "/users", {"user": body}, token)["user"]["id"]
        ask(keystone, "PUT", f"/projects/{home}/users/{made}/roles/{roles[0]['id']}", token=token)
        report(next(counted))

    counted = itertools.count(1)
    project_ids = _parallel(project, range(1, projects + 1))
    _parallel(user, range(1, users + 1))


def reset(keystone, database, users: int, projects: int, entries: int) -> None:
    """Restore the content that `fill` and `revoke` made.

    Users and projects that were added are removed. The revocation table, which each removal extends, gets
    `entries` rows again, all of revoked tokens: those that are there, and new ones.
    `database`: a system with MySQL's protocol. SystemFailure if one of the first users or projects is missing.
    """
    token = keystone.admin_token()
    for kind, name, count in (("users", user_name, users), ("projects", project_name, projects)):
        expected = {ADMIN, *(name(number) for number in range(1, count + 1))}
        found = ask(keystone, "GET", f"/{kind}", token=token)[kind]
        _parallel(lambda one, kind=kind: ask(keystone, "DELETE", f"/{kind}/{one['id']}", token=token),
                  [one for one in found if one["name"] not in expected])
        lost = expected - {one["name"] for one in found}
        if lost:
            raise SystemFailure(f"Keystone has lost {len(lost)} {kind}, such as {min(lost)}")
    database.query(f"DELETE FROM {TABLE} WHERE {NOT_OF_TOKENS}")
    if entries_of(database) > entries:
        database.query(f"DELETE FROM {TABLE}")
    revoke(keystone, database, entries)


def revoke(keystone, database, entries: int) -> None:
    """Issue and revoke tokens until the revocation table has exactly `entries` rows, two for each
    token; SystemFailure if the number is not reached."""
    check_entries(entries)
    for _ in range(TRIES):
        missing = entries - entries_of(database)
        if missing <= 0:
            break
        if missing % ROWS_PER_TOKEN:    # of one token, Keystone wrote the first row and failed at the second
            database.query(f"DELETE FROM {TABLE} ORDER BY id LIMIT 1")
            continue
        token = keystone.admin_token()
        _parallel(lambda _: _issue_and_revoke(keystone, token), range(missing // ROWS_PER_TOKEN))
    if (found := entries_of(database)) != entries:
        raise SystemFailure(f"Keystone's revocation table has {found} rows, and not {entries}")


def check_entries(entries: int) -> None:
    """InputError unless whole tokens make this number of rows."""
    if entries < 0 or entries % ROWS_PER_TOKEN:
        raise InputError(f"{entries} rows of revocations", key="revocations",
                         allowed=f"a multiple of {ROWS_PER_TOKEN}, the rows of one revoked token")


def entries_of(database) -> int:
    return database.query(f"SELECT COUNT(*) FROM {TABLE}")[0][0]


def ask(keystone, method: str, path: str, body=None, token=None, headers=None):
    """The parsed answer to a request that must succeed; repeated up to TRIES times on server errors, after a
    growing pause. What a repeated POST finds made, by the request before, is looked up by its name."""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE_S * 2 ** (number - 1))
        try:
            answer = keystone.request(method, path, body, token, headers)
        except (http.client.HTTPException, OSError):
            if number == TRIES - 1:
                raise
            continue
        if answer.status < 300 or (method == "DELETE" and answer.status == 404):
            return answer.json
        if method == "POST" and answer.status == 409 and number and (found := _named(keystone, path, body, token)):
            return found
        if answer.status < 500 or number == TRIES - 1:
            raise SystemFailure(f"Keystone answered {method} {path} with {answer.status}: "
                                f"{answer.text[:300]}")


def _named(keystone, path: str, body: dict, token) -> dict | None:
    """What has the name and the domain of a POST's body, as that would have answered; None if nothing has."""
    (kind, wanted), = body.items()
    key = urlencode({each: wanted[each] for each in ("name", "domain_id") if each in wanted})
    found = ask(keystone, "GET", f"{path}?{key}", token=token)[path.strip("/")]
    return {kind: found[0]} if found else None


def _issue_and_revoke(keystone, token):
    subject = keystone.admin_token()
    ask(keystone, "DELETE", "/auth/tokens", token=token, headers={"X-Subject-Token": subject})


def _parallel(job, items) -> list:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(job, items))


def seed(database_host, keystone_host, *, users: int, projects: int, revocations: int):
    """The seed database with this content, made once on these two hosts and cached.

    Returns (data directory in the cache, of a database server that was stopped in order; the Secrets
    of the Keystone that filled it).
    """
    secrets = Secrets.of_machine()
    server = database_host.run(f"{MARIADBD} --version").stdout.strip()
    recipe = (RECIPE, server, PACKAGES.pins.read_text(), users, projects, revocations,
              secrets.digest)
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]

    def fill(folder):
        say(f"making the database that all runs start from, once: Keystone's tables, {users} users, "
            f"{projects} projects")
        began = time.monotonic()
        with _running(database_host, keystone_host, secrets) as (node, keystone):
            _fill(node, keystone, users, projects, revocations)
            keystone.stop()
            node.stop()
            fetch_data(node.host, node.data, folder, NOT_COPIED)
        say(f"made in {time.monotonic() - began:.0f} s")

    return owners_alone(build_once(f"keystone-seed-{digest}", fill)), secrets


@contextmanager
def _running(database_host, keystone_host, secrets):
    """A cluster of one node and a Keystone on it; both are removed afterwards."""
    node = GaleraNode(database_host)
    keystone = Keystone.over(keystone_host, node, secrets)
    try:
        node.up()
        keystone.up()
        yield node, keystone
    finally:
        destroy_all([node, keystone])


def _fill(node, keystone, users, projects, revocations):
    def report(number):
        if number % REPORT_EVERY == 0 and number < users:
            say(f"{number} users made")

    fill(keystone, users, projects, report)
    revoke(keystone, node, revocations)
