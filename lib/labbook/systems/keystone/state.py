"""What is in a Keystone before a measurement: users, projects, entries of revoked tokens.

All is made through REST, as an operator's would be, by a few requests at a time; only rows of the
table of revocations are taken away behind Keystone's back, which has no request for it.
"""

import hashlib
import http.client
import itertools
import secrets
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from labbook.errors import InputError, SystemFailure
from labbook.lab.cache.build import made
from labbook.lab.ssh.transfer import say
from labbook.systems.galera.node import NOT_COPIED, GaleraNode
from labbook.systems.keystone.config import ADMIN, DATABASE, Secrets
from labbook.systems.keystone.server import PACKAGES, Keystone
from labbook.systems.sql.mariadb import SERVER

AT_ONCE = 6
# Writers on several nodes of a cluster may be in each other's way: then Keystone answers 500, or
# closes the connection.
TRIES = 8
ROWS_OF_A_TOKEN = 2  # one by its own name, one by that of the chain it begins
TABLE = f"{DATABASE}.revocation_event"
NOT_OF_TOKENS = "audit_id IS NULL AND audit_chain_id IS NULL"  # but of users that were removed
RECIPE = 1  # of what is made here beside the numbers: another one makes the kept ones void
TELL_AT = 250  # users
PACK_SECONDS = 600


def user_name(number: int) -> str:
    return f"user{number:04d}"


def project_name(number: int) -> str:
    return f"project{number:03d}"


def fill(keystone, users: int, projects: int, tell=lambda made: None) -> None:
    """Make the users, each a member of a project, as many in each as in the others; they have
    passwords that nobody knows. `tell(made)` is called with the number of users made so far."""
    if users and not projects:
        raise InputError(f"{users} users need a project", key="projects", allowed="1 and more")
    token = keystone.admin_token()
    roles = ask(keystone, "GET", "/roles?name=member", token=token)["roles"]

    def project(number):
        body = {"name": project_name(number), "domain_id": "default"}
        return ask(keystone, "POST", "/projects", {"project": body}, token)["project"]["id"]

    def user(number):
        mine = places[number % projects]
        body = {"name": user_name(number), "domain_id": "default", "default_project_id": mine,
                "password": secrets.token_urlsafe()}
        made = ask(keystone, "POST", "/users", {"user": body}, token)["user"]["id"]
        ask(keystone, "PUT", f"/projects/{mine}/users/{made}/roles/{roles[0]['id']}", token=token)
        tell(next(counted))

    counted = itertools.count(1)
    places = _all(project, range(1, projects + 1))
    _all(user, range(1, users + 1))


def reset(keystone, database, users: int, entries: int) -> None:
    """As after `fill` and `revoke`: users that came since are removed, and the table of
    revocations, which that has made longer, holds `entries` rows again, of revoked tokens: those
    that Keystone has not dropped meanwhile for their age, and new ones.

    `database`: a system of MySQL's protocol. SystemFailure when a user who was filled in is gone.
    """
    token = keystone.admin_token()
    kept = {ADMIN, *(user_name(number) for number in range(1, users + 1))}
    found = ask(keystone, "GET", "/users", token=token)["users"]
    _all(lambda user: ask(keystone, "DELETE", f"/users/{user['id']}", token=token),
         [user for user in found if user["name"] not in kept])
    gone = kept - {user["name"] for user in found}
    if gone:
        raise SystemFailure(f"Keystone has lost {len(gone)} users, such as {min(gone)}")
    database.query(f"DELETE FROM {TABLE} WHERE {NOT_OF_TOKENS}")
    if entries_of(database) > entries:
        database.query(f"DELETE FROM {TABLE}")
    revoke(keystone, database, entries)


def revoke(keystone, database, entries: int) -> None:
    """Issue and revoke tokens until the table of revocations has exactly `entries` rows, of which
    each token makes two; SystemFailure when it does not come to that."""
    check_entries(entries)
    for _ in range(TRIES):
        missing = entries - entries_of(database)
        if missing <= 0:
            break
        token = keystone.admin_token()
        _all(lambda _: _issue_and_revoke(keystone, token), range(missing // ROWS_OF_A_TOKEN))
    if missing:
        raise SystemFailure(f"Keystone's table of revocations does not come to {entries} rows; "
                            f"{entries - missing} were there last")


def check_entries(entries: int) -> None:
    """InputError for a number of rows that whole tokens do not make."""
    if entries < 0 or entries % ROWS_OF_A_TOKEN:
        raise InputError(f"{entries} rows of revocations", key="revocations",
                         allowed=f"a multiple of {ROWS_OF_A_TOKEN}, which a revoked token makes")


def entries_of(database) -> int:
    return database.query(f"SELECT COUNT(*) FROM {TABLE}")[0][0]


def ask(keystone, method: str, path: str, body=None, token=None, headers=None):
    """The JSON of the answer to a request that must succeed, tried again where Keystone failed."""
    for left in reversed(range(TRIES)):
        try:
            answer = keystone.request(method, path, body, token, headers)
        except (http.client.HTTPException, OSError):
            if not left:
                raise
            continue
        if answer.status < 300 or (method == "DELETE" and answer.status == 404):
            return answer.json
        if answer.status < 500 or not left:
            raise SystemFailure(f"Keystone answered {method} {path} by {answer.status}: "
                                f"{answer.text[:300]}")


def _issue_and_revoke(keystone, token):
    subject = keystone.admin_token()
    ask(keystone, "DELETE", "/auth/tokens", token=token, headers={"X-Subject-Token": subject})


def _all(job, items) -> list:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(job, items))


def seed(database_host, keystone_host, *, users: int, projects: int, revocations: int):
    """(the data directory, in the cache, of a database server that was stopped in order; the
    Secrets of the Keystone that filled it). Made on these two hosts when it is not there.
    """
    secrets = Secrets.load(made("keystone-secrets", Secrets().save))
    server = database_host.run(f"{SERVER} --version").stdout.strip()
    recipe = (RECIPE, server, PACKAGES.pins.read_text(), users, projects, revocations,
              secrets.digest)
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]

    def fill(folder):
        say(f"making the database that all start from, once: Keystone's tables, {users} users, "
            f"{projects} projects")
        began = time.monotonic()
        with _running(database_host, keystone_host, secrets) as (node, keystone):
            _fill(node, keystone, users, projects, revocations)
            keystone.stop()
            node.stop()
            _take(node, folder)
        say(f"made in {time.monotonic() - began:.0f} s")

    return made(f"keystone-seed-{digest}", fill), secrets


@contextmanager
def _running(database_host, keystone_host, secrets):
    """A cluster of one node and a Keystone over it, gone afterwards."""
    node = GaleraNode(database_host)
    keystone = Keystone.over(keystone_host, node, secrets)
    try:
        node.up()
        keystone.up()
        yield node, keystone
    finally:
        keystone.destroy()
        node.destroy()


def _fill(node, keystone, users, projects, revocations):
    def tell(number):
        if number % TELL_AT == 0 and number < users:
            say(f"{number} users made")

    fill(keystone, users, projects, tell)
    revoke(keystone, node, revocations)


def _take(node, folder: Path) -> None:
    """The stopped node's data, but for what it makes anew, into a folder of this machine."""
    packed, kept = node.home / "data.tar.gz", folder / "data.tar.gz"
    left_out = " ".join(f"--exclude=./{name}" for name in NOT_COPIED)
    node.host.run(f"tar -C {node.data} {left_out} -czf {packed} .", timeout=PACK_SECONDS)
    node.host.get(packed, kept)
    with tarfile.open(kept) as tar:
        tar.extractall(folder, filter=_ours)
    kept.unlink()


def _ours(member, folder):
    """Files and folders as this user's, whoever's they were there."""
    member.uid = member.gid = None
    member.uname = member.gname = None
    return tarfile.data_filter(member, folder)
