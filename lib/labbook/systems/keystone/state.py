"""What is in a Keystone before a measurement: users, projects, entries of revoked tokens.

All is made through REST, as an operator's would be, by a few requests at a time; only rows of the
table of revocations are taken away behind Keystone's back, which has no request for it.
"""

import http.client
import itertools
import secrets
from concurrent.futures import ThreadPoolExecutor

from labbook.errors import InputError, SystemFailure
from labbook.systems.keystone.config import ADMIN, DATABASE

AT_ONCE = 6
# Writers on several nodes of a cluster may be in each other's way: then Keystone answers 500, or
# closes the connection.
TRIES = 8
ROWS_OF_A_TOKEN = 2  # one by its own name, one by that of the chain it begins
TABLE = f"{DATABASE}.revocation_event"
NOT_OF_TOKENS = "audit_id IS NULL AND audit_chain_id IS NULL"  # but of users that were removed


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
