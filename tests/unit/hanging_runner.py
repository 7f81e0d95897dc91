"""The metadata clients' runner with calls that never come back: STAT of every name, once the file
that HANGS names is there."""

import os
import sys
import time

from labbook.workloads.clients.on_host.runner import main
from labbook.workloads.files.on_host import client as metadata_client
from labbook.workloads.files.on_host import runner as metadata_runner
from labbook.workloads.files.on_host.calls import STAT


def hanging(folder, name, _):
    while os.path.exists(os.environ["HANGS"]):
        time.sleep(60)
    os.stat(name, dir_fd=folder)


functions = list(metadata_client.FUNCTIONS)
functions[STAT] = hanging
metadata_client.FUNCTIONS = tuple(functions)

if __name__ == "__main__":
    sys.exit(main(metadata_runner.Clients))
