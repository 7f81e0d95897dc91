"""Tracing instances of this machine that labs made; asked without the code under test."""

import os
import subprocess

LOOK = """[ -d /sys/kernel/tracing/instances ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 0
ls /sys/kernel/tracing/instances"""


def instances(prefix="labbook-") -> set[str]:
    command = [*(["sudo", "-n"] if os.geteuid() else []), "unshare", "--mount", "sh", "-c", LOOK]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    return {name for name in output.split() if name.startswith(prefix)}
