"""Where a server runs while one client calls it: on its cores that are not the client's.

The large server shares a core with the clients. Of two processes that wake each other in turn the kernel now puts
both on one core, now each on its own, and keeps to that for seconds: over nine starts a call took Cassandra 24 or
47 µs and MySQL 11 or some 60 µs. The paper's client is a machine of its own.
"""

from contextlib import contextmanager

# Every thread of the session in which the server was started; a thread may end meanwhile, so once more.
PIN = """for pid in $(ps -o pid= -s "$(ps -o sid= -p {pid} | tr -d ' ')"); do
  taskset -acp {cores} $pid || taskset -acp {cores} $pid || exit 1
done > /dev/null"""


@contextmanager
def beside(server, client):
    """A context in which a server (a System) does not use the cores of the host `client`; nothing changes where
    it has no others, or shares none."""
    cores = server.host.cores or []
    others = [core for core in cores if core not in (client.cores or ())]
    if not others or others == cores:
        yield
        return
    _run_on(server, others)
    try:
        yield
    finally:
        _run_on(server, cores)


def _run_on(server, cores: list[int]) -> None:
    server.host.run(PIN.format(pid=server.process.pid, cores=",".join(map(str, cores))))
