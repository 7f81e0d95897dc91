"""One call to Keystone, step by step, as Rally makes it in an iteration of its KeystoneBasic.

The requests are those of rally-openstack 4.1.0, in its order: a client without a version discovers
the API's and authenticates; a second one, of version 3, does the same again, looks the domain up
(first by id, which fails, then by name), creates the user and, as the answer has no `project_id`,
reads it back. Rally counts all of this in the call; the first client's part, which it counts in no
step, is "authenticate" here. Two calls are not Rally's: one that also creates a project for its user, and
one of a single request, by a client that has logged in before.
"""

import time
import uuid

from keystoneauth1 import discover
from keystoneauth1.identity import Password
from keystoneauth1.session import Session
from keystoneclient import client
from keystoneclient.exceptions import NotFound

OURS = "labbook-"   # how the names of our users begin
STEPS = {"create_user": ("authenticate", "create_user"),
         "create_and_list_users": ("authenticate", "create_user", "list_users"),
         "create_project_and_user": ("authenticate", "create_project", "create_user"),
         "one_post": ("post_user",)}
LOGGED_IN = ("one_post",)     # scenarios whose clients log in once, before all start


class KeystoneCall:
    """One call, with a connection and a token of its own, or with those of a `login`: what `logged_in` of a call
    before it gave.

    `credentials`: auth_url (with or without /v3), username, password, project, domain. `user`: the
    name of the user it created, "" until Keystone has confirmed it; `tried`: the same, from before
    it is asked for; `made_s`: when it was confirmed, by `now`; `seen`: the names of our users that
    the list had, None before.
    """

    def __init__(self, credentials: dict, now=time.monotonic, login=(None, None)):
        self._root = credentials["auth_url"].rstrip("/").removesuffix("/v3")
        self._given = credentials
        self.user, (self._client, self._domain) = "", login
        self._project_id = None
        self.tried, self.made_s, self.seen, self._now = "", None, None, now

    def logged_in(self) -> tuple:
        """(a client that has a token and knows where to send its requests, the domain of its users)."""
        self._client = client.Client(version="3", session=self._session(self._root))
        self._domain = self._find_domain()
        return self._client, self._domain

    def authenticate(self) -> None:
        discover.Discover(Session(), f"{self._root}/v3").version_data()
        session = self._session(f"{self._root}/v3")
        session.auth.get_access(session)
        client.Client(session=session)

    def create_project(self) -> None:
        self.logged_in()
        project = self._client.projects.create(name=f"{OURS}{uuid.uuid4().hex}", domain=self._domain.id)
        self._project_id = project.id   # as text: of the object, the client would look for more by a request

    def create_user(self) -> None:
        if self._client is None:
            self.logged_in()
        self.post_user().get()

    def post_user(self):
        """Create a user of the project that the call created, if any, in one request: the user as answered."""
        self.tried = f"{OURS}{uuid.uuid4().hex}"
        user = self._client.users.create(name=self.tried, domain=self._domain.id, enabled=True,
                                         default_project=self._project_id)
        self.user, self.made_s = self.tried, self._now()
        return user

    def list_users(self) -> None:
        found = self._client.users.list()
        if not found:
            raise LookupError("no user in the list")
        self.seen = [user.name for user in found if user.name.startswith(OURS)]

    def _find_domain(self):
        name = self._given["domain"]
        try:
            return self._client.domains.get(name)
        except NotFound:
            found = self._client.domains.list(name=name)
            if not found:
                raise
            return found[0]

    def _session(self, url) -> Session:
        given = self._given
        return Session(Password(
            url, username=given["username"], password=given["password"],
            project_name=given["project"], user_domain_name=given["domain"],
            project_domain_name=given["domain"]))
