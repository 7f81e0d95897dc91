"""The way to a crew's controller: straight to a host that the lab made, else through SSH."""

import json
import socket

from labbook.errors import LabError
from labbook.lab.ssh.tunnel import tunnel
from labbook.workloads.crew.connection_files import FILES, through

START_SECONDS = 60
CONTROLLER = "crew-controller"
LOOPBACK = "127.0.0.1"


class Way:
    """`far`: the host is a user's own, of which we reach SSH alone.

    `meeting`: the addresses at which the controller listens to engines and to us; `client`:
    ipyparallel's, None while the way is not open.
    """

    def __init__(self, host):
        self._host, self.far = host, host.is_remote
        self.meeting = (host.address, LOOPBACK) if self.far else (host.control_address,) * 2
        self.client, self._tunnels = None, []

    def open(self) -> None:
        """LabError when the host cannot be reached, SystemFailure when the controller has ended."""
        import ipyparallel

        host = self._host
        connection = json.loads(host.get(FILES.format("client")))
        host.wait_for(lambda: self._listens(connection["registration"]),
                      "the controller to listen", START_SECONDS, host.process(CONTROLLER))
        try:
            if self.far:
                connection = through(connection, self._lead)
            self.client = ipyparallel.Client(connection, timeout=START_SECONDS)
        except ipyparallel.TimeoutError:
            self.close()
            raise LabError(f"{host.name}: the controller of the clients does not answer") from None
        except BaseException:
            self.close()
            raise

    def broken(self) -> bool:
        """Whether something that was under way may be gone."""
        return any(led.lost for led in self._tunnels)

    def close(self) -> None:
        if self.client is not None:
            self.client.close(linger=0)  # what could not be sent is not waited for
            self.client = None
        while self._tunnels:
            self._tunnels.pop().close()

    def _lead(self, port) -> int:
        self._tunnels.append(tunnel(self._host, LOOPBACK, port))
        return self._tunnels[-1].port

    def _listens(self, port) -> bool:
        try:
            if self.far:
                self._host.dial(LOOPBACK, port).close()
            else:
                socket.create_connection((self.meeting[1], port), timeout=1).close()
            return True
        except OSError:
            return False
