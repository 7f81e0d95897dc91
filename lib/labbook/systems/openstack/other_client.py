"""Another version of a cloud's client beside labbook's own: Debian's openstacksdk, on the platform's host."""

import json
import shlex
from pathlib import Path

from labbook.errors import SystemFailure
from labbook.systems.cloud.openstack_session import TIMEOUT_S
from labbook.systems.openstack.config import REGION
from labbook.systems.openstack.releases import DEBIAN_PYTHON

PROGRAM = Path(__file__).with_name("on_host") / "other_client.py"
VERSION = "from importlib.metadata import version; print(version('openstacksdk'))"
CALL_SECONDS = 120


class OtherClient:
    """Of the user that `auth` names, without a password, which is in `password_file` of the host. folder: where
    this writes its program there."""

    def __init__(self, host, auth: dict, password_file, folder):
        self._host, self._auth, self._password_file = host, auth, str(password_file)
        self._program = folder / PROGRAM.name

    def name(self) -> str | None:
        """With its version; None where it is not installed."""
        found = self._host.run(f"{DEBIAN_PYTHON} -c {shlex.quote(VERSION)}", check=False)
        return f"openstacksdk {found.stdout.strip()}" if found.exit_code == 0 else None

    def snapshot(self, server_id: str, name: str, metadata: dict) -> str:
        """The id of an image that is being made of the server; SystemFailure with the client's last line."""
        self._host.put(PROGRAM.read_text(), self._program)
        given = {"auth": self._auth, "password_file": self._password_file, "region": REGION, "timeout_s": TIMEOUT_S,
                 "server": server_id, "name": name, "metadata": metadata}
        done = self._host.run(f"echo {shlex.quote(json.dumps(given))} | {DEBIAN_PYTHON} {self._program}",
                              timeout=CALL_SECONDS, check=False)
        if done.exit_code:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise SystemFailure(f"Debian's client did not make an image of a server: {last}", log=done.stderr[-2000:])
        return json.loads(done.stdout)["image"]
