"""The wiki: an HTTP server whose pages are in Cassandra or MySQL; several servers may share them."""

import http.client
import json
import shlex

from labbook.errors import InputError
from labbook.systems.base import Needs, System
from labbook.targets import CQL, HTTP, MYSQL, THRIFT, addresses, password

PROGRAM = "labbook.systems.wiki.on_host.program"
STORES = (THRIFT, CQL, MYSQL)


class Wiki(System):
    """One web server over a store that runs already and has its table; see `over`."""

    NAME = "wiki"
    SETTINGS = {
        "store": {"enum": list(STORES)},
        "store_addresses": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "store_port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "table": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "default": "pairs"},
        "threads": {"type": "integer", "minimum": 1, "maximum": 256, "default": 10},
    }
    NEEDS = Needs(packages=("iproute2", "procps"), commands=("ss", "ps"))
    port = 8000
    protocol = HTTP
    behind = None       # the store

    @classmethod
    def over(cls, host, store, **settings) -> "Wiki":
        """A wiki on `host` whose pages are in `store`, a target called by Thrift, CQL or MySQL's
        protocol."""
        wiki = cls(host, store=store.protocol, store_port=store.port, **settings,
                   store_addresses=addresses(store))
        wiki.behind = store
        return wiki

    def deploy(self) -> None:
        s = self.settings
        for name in ("store", "store_addresses", "store_port"):
            if getattr(s, name) is None:
                raise InputError("a wiki needs it", file="settings of wiki", key=name)
        store = {"protocol": s.store, "addresses": s.store_addresses, "port": s.store_port,
                 "table": s.table, "password": password(self.behind)}
        self.put_secret(json.dumps({"address": self.address, "port": self.port,
                                    "threads": s.threads, "store": store}), "settings.json")

    def command(self) -> str:
        return shlex.join((self.host.python, "-m", PROGRAM, f"{self.home}/settings.json"))

    def answers(self) -> None:
        """Request a page, which the store has to answer too."""
        answer = self.request("GET", "/FrontPage")
        if answer.status not in (200, 404):
            raise ConnectionError(f"{answer.status} {answer.reason}")

    def report(self) -> dict:
        return {"version": self.request("HEAD", "/FrontPage").headers["Server"]}

    def request(self, method: str, path: str, body=None, headers=None):
        """The answer to one request, with its body as `.text`; takes one or two SSH round trips."""
        connection = http.client.HTTPConnection(self.address, self.port)
        connection.sock = self.channel()
        try:
            try:
                connection.request(method, path, body, headers or {})
            except TimeoutError:
                raise
            except OSError:  # a server may refuse a body and close before it has received all of it
                pass
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()
