"""All threads of a real server leave the client's core, and come back."""

from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.papers.cms_scalability import placement
from labbook.systems.null.server import NullServer

ALLOWED = "cat /proc/{pid}/task/*/status | grep Cpus_allowed_list | cut -f 2 | sort -u"


def allowed(server) -> str:
    return server.host.run(ALLOWED.format(pid=server._server_pid())).stdout.strip().replace("-", ",")


def test_a_server_leaves_the_clients_core_and_comes_back():
    hosts = {"client": {"cores": 1}, "idle": {"cores": 1},
             "large": {"cores_of": ["idle", "client"], "quota": 0.3}}
    with Lab.up(describe(hosts), Environment("local"), new_id()) as lab:
        client, large = lab.host("client"), lab.host("large")
        server = NullServer(large, protocol="mysql", value_bytes=10).up()
        both, other = (",".join(map(str, sorted(cores))) for cores in (large.cores, lab.host("idle").cores))
        assert allowed(server) == both
        with placement.beside(server, client):
            assert allowed(server) == other
        assert allowed(server) == both
