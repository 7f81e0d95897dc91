"""Debian packages on a user's host: find them, and install them by sudo where that is allowed.

Packages stay when the lab goes down. An installation continues when the connection breaks or this
process ends, so that no package is half installed.
"""

import shlex
import threading
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.journal import append_command
from labbook.lab.on_host import quiet_apt
from labbook.lab.remote.parallel import twice
from labbook.lab.remote.probe import alternatives
from labbook.lab.ssh.transfer import say

SECONDS = 2100       # quiet_apt's own limits are below this
BACK_SECONDS = 60    # for a lost connection to come back
INSTALLED = "dpkg-query -W -f '${Package} ${db:Status-Status} ${Version}\\n'"
CANDIDATES = "LC_ALL=C apt-cache policy"
# Detached from the connection, with the exit code written last.
BEGIN = """rm -f exit; setsid sh -c @WORK@ > /dev/null 2>&1 < /dev/null &
true"""
WORK = """{python} -I quiet_apt.py log {packages} > said 2>> log; code=$?
rmdir /var/lib/labbook 2> /dev/null; echo $code > exit.new; mv exit.new exit
chmod a+r log said exit"""

_locks = defaultdict(threading.Lock)


def provide(host, needs, stopped=lambda: False) -> dict[str, str]:
    """Install what the host lacks of `needs` (`a | b`: either).

    Returns {package: version} of all newly installed packages, dependencies included, which are also
    written into the lab's journal on the host. LabError when something is missing and must not or
    cannot be installed, and soon after `stopped()` becomes true; the installation then goes on without us.
    """
    with _locks[host.login.address, host.login.port]:
        missing = _missing(host, needs)
        if not missing:
            return {}
        if not host.may("packages"):
            names = " ".join(need.split("|")[0].strip() for need in missing)
            raise LabError(f"{host.name}: {', '.join(missing)} missing, and nothing allows to install",
                           remedy=f"There: sudo apt-get install {names}; or add packages to its `allow`")
        return _install(host, missing, stopped)


def _missing(host, needs) -> list[str]:
    have = _installed(host, [name for need in needs for name in alternatives(need)])
    return [need for need in needs if not any(name in have for name in alternatives(need))]


def _installed(host, names=()) -> dict[str, str]:
    """{name: version} of the installed packages among `names`, or of all."""
    found = host.run(f"{INSTALLED} {shlex.join(sorted(names))} 2> /dev/null", check=False)
    if found.exit_code == 127:
        raise LabError(f"{host.name}: no dpkg-query: packages are looked for on Debian and its kin only",
                       remedy="Use hosts with Debian or Ubuntu")
    rows = (line.split() for line in found.stdout.splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}


def _choose(host, need) -> str:
    """The first alternative in apt's lists on the host; the first of all when there are no lists."""
    names = alternatives(need)
    if len(names) == 1:
        return names[0]
    output = host.run(f"{CANDIDATES} {shlex.join(names)}", check=False).stdout
    blocks = {block.split(":", 1)[0].strip(): block for block in output.replace("\n ", "\t").splitlines()}
    return next((name for name in names if "Candidate:" in blocks.get(name, "")
                 and "Candidate: (none)" not in blocks[name]), names[0])


def _install(host, missing, stopped) -> dict[str, str]:
    lab = host.root.parent
    # A separate Host: outside of the lab host's limits, and not killed with it.
    outside = replace(host, root=lab / "apt", groups=(), env={})
    host.run(f"mkdir -p {shlex.quote(str(outside.root))}")
    try:
        chosen = [_choose(outside, need) for need in missing]
        before = _installed(outside)
        _write_down(outside, lab, asked=chosen)
        say(f"{host.name}: installing Debian packages: {' '.join(chosen)}")
        outside.put(Path(quiet_apt.__file__), "quiet_apt.py")
        work = WORK.format(python=shlex.quote(host.python), packages=shlex.join(chosen))
        # If it is started twice, the second waits for the first and finds everything done.
        twice(outside, lambda: outside.run(BEGIN.replace("@WORK@", shlex.quote(work)), root=True))
        _check(outside, _await_end(outside, stopped), chosen)
        after = _installed(outside)
        new = {name: version for name, version in after.items() if before.get(name) != version}
        _write_down(outside, lab, installed=new)
        say(f"{host.name}: installed {', '.join(sorted(new))}; they stay")
        return new
    finally:
        outside.close()


def _await_end(host, stopped) -> int:
    """Wait for apt's exit code, across lost connections. LabError after SECONDS, and where `stopped()`."""
    until, back = time.monotonic() + SECONDS, None
    while True:
        if stopped():
            raise LabError(f"{host.name}: stopped while Debian packages are installed, which goes on there",
                           remedy=f"See there: {host.root}/log")
        try:
            ended = host.run("cat exit", check=False)
            back = None
        except LabError:
            back = back or time.monotonic() + BACK_SECONDS
            if time.monotonic() > back:
                raise
        else:
            if ended.exit_code == 0:
                return int(ended.stdout)
        if time.monotonic() > until:
            raise LabError(f"{host.name}: apt-get did not end within {SECONDS} s",
                           remedy=f"See there: {host.root}/log")
        time.sleep(0.5)


def _check(host, code, packages):
    if code == quiet_apt.WOULD_REMOVE:
        removed = ", ".join(host.run("cat said").stdout.split())
        raise LabError(f"{host.name}: to install {' '.join(packages)} Debian would remove {removed}, "
                       "so nothing was installed", remedy="Use another host, or remove them yourself")
    if code:
        log = host.run("tail -n 15 log", check=False).stdout.strip()
        raise LabError(f"{host.name}: could not install {' '.join(packages)}:\n{log}",
                       remedy=f"Try there: sudo apt-get update && sudo apt-get install {' '.join(packages)}")


def _write_down(host, lab, **what):
    host.run(append_command({"made": "packages", **what}, lab / "journal"))
