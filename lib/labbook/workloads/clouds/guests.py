"""A cloud's servers as machines that a host reaches over ssh."""

import threading

from labbook.workloads.machines.machine import Machine

KNOWN_HOSTS = "known_hosts"


class Guests:
    """`via`: the host from which servers are reached; `key`: path of a private key there.

    A server of a user's own cloud must have one of the host keys that its console has shown. The
    servers of a lab's cloud are inside one host of the lab, where nobody else can answer for them.
    """

    def __init__(self, cloud, via, key: str):
        self._cloud, self._via, self._key = cloud, via, key
        self._file = "" if cloud.own is None else f"{key}-{KNOWN_HOSTS}"
        self._pinned, self._lock = {}, threading.Lock()     # {address: (server's id, its keys)}

    def reach(self, server) -> Machine:
        """The server; SystemFailure if its console shows no host key."""
        if self._file:
            with self._lock:
                self._pin(server)
        return Machine(server.name, self._via, server.address, self._cloud.user, self._key, self._file)

    def _pin(self, server) -> None:
        known, _ = self._pinned.get(server.address, (None, []))
        if known == server.id:
            return
        pinned = {**self._pinned, server.address: (server.id, self._cloud.host_keys(server))}
        self._via.put("".join(f"{address} {key}\n" for address, (_, keys) in pinned.items()
                              for key in keys), self._file, 0o600)
        self._pinned = pinned
