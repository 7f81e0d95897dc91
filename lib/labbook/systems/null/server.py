"""A server that costs next to nothing, against which clients measure their own ceiling."""

import shlex
from pathlib import Path

from labbook.systems.base import Needs, System
from labbook.targets import DOTS, VALUES

PROGRAM = Path(__file__).with_name("on_host") / "null_server"
PAPERS = Path(__file__).parents[2] / "papers"


def protocol_files() -> dict[str, Path]:
    """{wire protocol: the module of the program that answers its calls}.

    A paper may bring one of its own: labbook/papers/PAPER/null_servers/PROTOCOL.py, which defines
    `answers` (and `size_of`) as the modules of the program do, with the standard library only.
    """
    files = [*PAPERS.glob("*/null_servers/[a-z]*.py"), *PROGRAM.glob("[a-z]*.py")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


class NullServer(System):
    """Answers the clients of one protocol. `value_bytes` and `values` are those of the clients'
    load; `credentials` are for clients of Keystone, and any others would be accepted too."""

    NAME = "null"
    SETTINGS = {
        "protocol": {"enum": list(protocol_files()), "default": "thrift"},
        "value_bytes": {"type": "integer", "minimum": 1, "maximum": 60000, "default": 100},
        "values": {"enum": list(VALUES), "default": DOTS},
    }
    NEEDS = Needs(packages=("iproute2", "procps"), commands=("ss", "ps"))
    port = 9199

    @property
    def protocol(self) -> str:
        return self.settings.protocol

    @property
    def credentials(self) -> dict:
        return {"auth_url": f"http://{self.address}:{self.port}/v3", "username": "admin",
                "password": "null", "project": "admin", "domain": "Default"}

    @classmethod
    def speaks(cls, **settings) -> str:
        return cls.checked(settings)["protocol"]

    def deploy(self) -> None:
        self.run("mkdir", self.home / PROGRAM.name)
        for file in (*PROGRAM.glob("__*__.py"), protocol_files()[self.protocol]):
            self.put(file.read_text(), PROGRAM.name, file.name)

    def command(self) -> str:
        return shlex.join((self.host.python, "-m", PROGRAM.name, self.protocol, self.address,
                           str(self.port), str(self.settings.value_bytes), self.settings.values))

    def answers(self) -> None:
        self.channel().close()

    def report(self) -> dict:
        return {}
