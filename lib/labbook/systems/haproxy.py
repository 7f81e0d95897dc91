"""HAProxy in front of servers of MySQL's protocol: who connects is given to each one in turn."""

import csv

from labbook.errors import InputError
from labbook.systems.base import Needs, System
from labbook.targets import MYSQL, USER

PROXY = "/usr/sbin/haproxy"  # not in the path of everybody who logs in
STATS_PORT = 3307  # on the host itself, for nobody else
MOST_CONNECTIONS = 400  # two files each, where a user may open 1024
# Galera's 4 is Synced; a node of a part without quorum has another state, and so has one that is
# joining. The answer's words are not in the question, which comes back with it.
ASK = ("SELECT IF(VARIABLE_VALUE = '4', CONCAT('syn', 'ced'), CONCAT('una', 'ble')) "
       "FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE'")
PLUGIN = b"mysql_native_password\0"
# LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x200 | 0x8000 | 0x80000
UTF8, QUERY, QUIT = b"\x21", b"\x03", b"\x01"


class HAProxy(System):
    """Its checks ask each server all `check_ms`: twice unwell, and it gets no more connections, and
    those it has are closed; once well, and it is back. See `over`.

    check galera: whether a node is Synced with a cluster that may write. tcp: whether its port
    is open.
    """

    NAME = "haproxy"
    SETTINGS = {
        "servers": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "server_port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 3306},
        "check": {"enum": ["galera", "tcp"], "default": "tcp"},
        "check_ms": {"type": "integer", "minimum": 10, "default": 1000},
    }
    NEEDS = Needs(packages=("haproxy", "iproute2", "procps"), commands=("ss", "ps"))
    port = 3306
    protocol = MYSQL

    @classmethod
    def over(cls, host, servers, **settings) -> "HAProxy":
        """A proxy on `host` for the nodes of a cluster in its own site, or for all when there are
        none, or for one server."""
        nodes = list(getattr(servers, "nodes", None) or [servers])
        near = [node for node in nodes if node.host.site == host.site] or nodes
        check = "galera" if nodes[0].NAME == "galera" else "tcp"
        return cls(host, **{"check": check, **settings}, server_port=nodes[0].port,
                   servers=[node.address for node in near])

    def deploy(self) -> None:
        if self.settings.servers is None:
            raise InputError("a proxy cannot do without", file="settings of haproxy", key="servers")
        self.put(configuration(self.settings, self.address, self.port), "haproxy.cfg")

    def command(self) -> str:
        return f"{PROXY} -db -f {self.home}/haproxy.cfg"

    def answers(self) -> None:
        """Waits for the first checks, and for a server's greeting through the proxy."""
        states = self.states()
        if "UP" not in states.values() or "unknown" in states.values():
            raise ConnectionError(f"servers are {states}")
        channel = self.channel()
        try:
            if channel.recv(5)[4:] != b"\x0a":
                raise ConnectionError("no greeting of MySQL's protocol")
        finally:
            channel.close()

    def states(self) -> dict[str, str]:
        """By address: UP or DOWN, with how far it is on the way to the other one, such as
        `UP 1/2`; `unknown` before its first check."""
        rows = csv.DictReader(self._ask("show stat").lstrip("# ").splitlines())
        return {row["svname"]: "unknown" if row["check_status"] in ("", "INI") else row["status"]
                for row in rows if row["svname"] in self.settings.servers}

    def report(self) -> dict:
        return {"version": self.run(PROXY, "-v").stdout.split()[2]}

    def _ask(self, words: str) -> str:
        """What the running proxy says about itself."""
        channel, said = self.host.dial("127.0.0.1", STATS_PORT), b""
        try:
            channel.sendall(f"{words}\n".encode())
            while part := channel.recv(65536):
                said += part
        finally:
            channel.close()
        return said.decode()


def configuration(settings, address: str, port: int) -> str:
    """haproxy.cfg."""
    checks = galera_check() if settings.check == "galera" else ["option tcp-check"]
    servers = [f"server {server} {server}:{settings.server_port} check"
               for server in settings.servers]
    parts = {
        "global": [f"maxconn {MOST_CONNECTIONS}", "nbthread 1",
                   f"stats socket ipv4@127.0.0.1:{STATS_PORT} level user"],
        # refused by one server, a connection goes to the next, also before a check has told
        "defaults": ["mode tcp", "option redispatch 1", "timeout connect 5s",
                     "timeout client 8h", "timeout server 8h", f"timeout check {settings.check_ms}ms"],
        "listen databases": [
            f"bind {address}:{port}", "balance roundrobin", *checks,
            f"default-server inter {settings.check_ms}ms fall 2 rise 1 "
            "on-marked-down shutdown-sessions", *servers],
    }
    return "\n".join(line for name, lines in parts.items()
                     for line in (name, *(f"    {line}" for line in lines), ""))


def galera_check() -> list[str]:
    """A conversation in MySQL's protocol: greeting, login, question, good-bye."""
    bye = f"tcp-check send-binary {packet(0, QUIT).hex()}"
    return ["option tcp-check", "tcp-check connect",
            "tcp-check expect rbinary ^.{8}0A comment greeting",
            f"tcp-check send-binary {packet(1, login()).hex()}",
            "tcp-check expect rbinary ^.{6}0200 comment login",
            f"tcp-check send-binary {packet(0, QUERY + ASK.encode()).hex()}",
            # with min-recv it says so at once, and not when time is up
            "tcp-check expect min-recv 5 !string unable comment state",
            "tcp-check expect string synced comment state", bye]


def login(user: str = USER) -> bytes:
    """MySQL's HandshakeResponse41 of a user without a password."""
    return (CAPABILITIES.to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + UTF8
            + bytes(23) + user.encode() + b"\0" + b"\0" + PLUGIN)


def packet(number: int, payload: bytes) -> bytes:
    """With its length and its number in the conversation before it."""
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload
