"""Versions of Debian packages on this machine."""

import subprocess

SECONDS = 30
FORMAT = "${Package} ${db:Status-Status} ${Version}\n"


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """{package: version} of those that are installed; empty where there is no dpkg. A package that was removed and
    not purged still has a version, and is not installed."""
    if not names:
        return {}
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", FORMAT, *names], capture_output=True, text=True,
                              timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}
