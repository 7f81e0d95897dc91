"""A server with next to no cost, against which clients find their own ceiling."""

import shlex
from pathlib import Path

from labbook.systems.base import Needs, System

PROGRAM = Path(__file__).with_name("on_host") / "null_server"
PROTOCOLS = ("thrift", "cql", "mysql", "http", "keystone")  # a module of the program each


class NullServer(System):
    """Answers the clients of each protocol; `process` is there to ask for its CPU."""

    NAME = "null"
    SETTINGS = {
        "protocol": {"enum": list(PROTOCOLS), "default": "thrift"},
        "value_bytes": {"type": "integer", "minimum": 1, "maximum": 60000, "default": 100},
        "values": {"enum": ["dots", "random"], "default": "dots"},
    }
    NEEDS = Needs(packages=("iproute2", "procps"), commands=("ss", "ps"))
    port = 9199

    @property
    def protocol(self) -> str:
        return self.settings.protocol

    @property
    def credentials(self) -> dict:
        """For clients of Keystone: any will do."""
        return {"auth_url": f"http://{self.address}:{self.port}/v3", "username": "admin",
                "password": "null", "project": "admin", "domain": "Default"}

    def deploy(self) -> None:
        self.run("mkdir", "-p", self.home / PROGRAM.name)
        for name in ("__init__", "__main__", self.protocol):
            self.put((PROGRAM / f"{name}.py").read_text(), PROGRAM.name, f"{name}.py")

    def command(self) -> str:
        return shlex.join((self.host.python, "-m", PROGRAM.name, self.protocol, self.address,
                           str(self.port), str(self.settings.value_bytes), self.settings.values))

    def answers(self) -> None:
        self.channel().close()

    def report(self) -> dict:
        return {}
