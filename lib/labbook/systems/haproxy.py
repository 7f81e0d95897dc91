"""HAProxy in front of servers of MySQL's protocol; connections go to each server in turn."""

import csv

from labbook.errors import InputError
from labbook.systems.base import Needs, System
from labbook.systems.galera.config import CHECK_USER
from labbook.targets import MYSQL, password

PROXY = "/usr/sbin/haproxy"  # not in the PATH of every user
STATS_PORT = 3307  # on the loopback interface
# Of a server's check, in the statistics: a prefix while one runs, and words for one that never ended.
UNDER_WAY, UNCHECKED = "* ", ("", "INI", "UNK")
MAX_CONNECTIONS = 400  # two file descriptors each, of the 1024 that a user may open
# State 4 of Galera is Synced; a joining node and one without quorum have other states. The words of
# the answer are not in the query, which the server sends back with it.
STATE_QUERY = ("SELECT IF(VARIABLE_VALUE = '4', CONCAT('syn', 'ced'), CONCAT('una', 'ble')) "
               "FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE'")
PLUGIN = b"mysql_native_password\0"
# LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x200 | 0x8000 | 0x80000
UTF8, QUERY, QUIT = b"\x21", b"\x03", b"\x01"


class HAProxy(System):
    """Checks each server every `check_ms`. After two failed checks a server gets no more connections
    and its open ones are closed; after one successful check it is used again. See `over`.

    check galera: the node is Synced with a cluster that may write. tcp: its port is open.
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
    behind = None       # one of the servers

    @property
    def password(self) -> str:
        """The servers', as of targets.password."""
        return password(self.behind)

    @classmethod
    def over(cls, host, servers, **settings) -> "HAProxy":
        """A proxy on `host` for `servers`: one server, or a cluster's nodes in the site of `host`
        (all nodes where that site has none)."""
        nodes = list(getattr(servers, "nodes", None) or [servers])
        near = [node for node in nodes if node.host.site == host.site] or nodes
        check = "galera" if nodes[0].NAME == "galera" else "tcp"
        proxy = cls(host, **{"check": check, **settings}, server_port=nodes[0].port,
                    servers=[node.address for node in near])
        proxy.behind = nodes[0]
        return proxy

    def deploy(self) -> None:
        if self.settings.servers is None:
            raise InputError("a proxy needs it", file="settings of haproxy", key="servers")
        self.put(configuration(self.settings, self.address, self.port), "haproxy.cfg")

    def command(self) -> str:
        return f"{PROXY} -db -f {self.home}/haproxy.cfg"

    def answers(self) -> None:
        """Every server has been checked, one is up, and its greeting comes through the proxy."""
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
        """By the server's address: UP or DOWN; `UP 1/2` after the first of two failed checks;
        `unknown` before the first check."""
        rows = csv.DictReader(self._ask("show stat").lstrip("# ").splitlines())
        return {row["svname"]: "unknown" if row["check_status"].removeprefix(UNDER_WAY) in UNCHECKED else row["status"]
                for row in rows if row["svname"] in self.settings.servers}

    def report(self) -> dict:
        return {"version": self.run(PROXY, "-v").stdout.split()[2]}

    def _ask(self, command: str) -> str:
        """The running proxy's answer to a command on its stats socket."""
        channel, answer = self.host.dial("127.0.0.1", STATS_PORT), b""
        try:
            channel.sendall(f"{command}\n".encode())
            while part := channel.recv(65536):
                answer += part
        finally:
            channel.close()
        return answer.decode()


def configuration(settings, address: str, port: int) -> str:
    """haproxy.cfg."""
    checks = galera_check() if settings.check == "galera" else ["option tcp-check"]
    servers = [f"server {server} {server}:{settings.server_port} check"
               for server in settings.servers]
    parts = {
        "global": [f"maxconn {MAX_CONNECTIONS}", "nbthread 1",
                   f"stats socket ipv4@127.0.0.1:{STATS_PORT} level user"],
        # a connection that one server refuses goes to the next, also before a check has failed
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
    """A check in MySQL's protocol: greeting, login, query of the state, good-bye."""
    bye = f"tcp-check send-binary {packet(0, QUIT).hex()}"
    return ["option tcp-check", "tcp-check connect",
            "tcp-check expect rbinary ^.{8}0A comment greeting",
            f"tcp-check send-binary {packet(1, login()).hex()}",
            "tcp-check expect rbinary ^.{6}0200 comment login",
            f"tcp-check send-binary {packet(0, QUERY + STATE_QUERY.encode()).hex()}",
            # without min-recv it would fail only after the timeout
            "tcp-check expect min-recv 5 !string unable comment state",
            "tcp-check expect string synced comment state", bye]


def login(user: str = CHECK_USER) -> bytes:
    """MySQL's HandshakeResponse41 of a user without a password, and without rights."""
    return (CAPABILITIES.to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + UTF8
            + bytes(23) + user.encode() + b"\0" + b"\0" + PLUGIN)


def packet(number: int, payload: bytes) -> bytes:
    """A MySQL packet: length and sequence number, then the payload."""
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload
