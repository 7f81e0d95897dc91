"""An ipyparallel engine on a machine of a fleet: `python -m labbook.pipeline.fleet.engine`.

The first line of its input is its connection file, so that keys are in no command line. It ends when its input
does: so with the SSH session that it was started in, and with its driver.
"""

import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

# Of the controller's heartbeats (5 a second): where the network is cut, the session stays open on this side.
OPTIONS = ("--IPEngine.enable_nanny=False", "--IPEngine.max_heartbeat_misses=300", "--timeout=60", "--log-level=WARN")


def main() -> None:
    stdin = sys.stdin       # a kernel may put another one in its place
    connection = stdin.readline()
    with tempfile.TemporaryDirectory(prefix="labbook-engine-") as folder:     # mode 0700
        threading.Thread(target=_end_with, args=(stdin, folder), daemon=True).start()
        file = Path(folder) / "connection.json"
        file.touch(0o600)
        file.write_text(connection)
        from ipyparallel.engine.app import IPEngine

        IPEngine.launch_instance([f"--profile-dir={folder}", f"--file={file}", *OPTIONS])


def _end_with(stdin, folder):
    while stdin.read(1):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
