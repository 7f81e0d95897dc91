"""Install what studies need and this machine lacks: Debian packages, artifacts of Maven Central,
Python packages of systems."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import takewhile
from pathlib import Path

from labbook import paths
from labbook.errors import LabError
from labbook.lab.on_host import quiet_apt
from labbook.lab.python_packages import NO_TOOLS
from labbook.pipeline.setup import peers
from labbook.pipeline.setup.requirements import Need, requirements
from labbook.study.records.debian import installed as versions


def main(studies=(), tests=False, benchmarks=False, profile="quick") -> int:
    """Install what `studies` need (all when empty). LabError names what cannot be installed, and a remedy."""
    needed = requirements(studies, tests, profile=profile, benchmarks=benchmarks)
    artifacts = [*needed.artifacts, *(peers.NEEDED if benchmarks else ())]
    missing = [need for need, found in installed(needed.packages.values()) if not found]
    if missing or quiet_apt.Machine().left_over():
        packages = [choose(need) for need in missing]
        if packages:
            _say(f"installing {len(packages)} Debian packages: {' '.join(packages)}")
        _install(packages, [one for one in artifacts if one.tools == NO_TOOLS])
    fetch_artifacts(artifacts)
    if benchmarks:
        _fetch_where_it_goes(peers.WHERE_IT_GOES)
    return 0


def _fetch_where_it_goes(artifacts):
    """Whoever lacks one of these has a row less, which names the reason."""
    for artifact in artifacts:
        if not is_here(artifact):
            _say(f"building {artifact}, which takes minutes")
            if reason := peers.why_not(artifact):
                _say(f"going on without {artifact}: {reason}")


def _say(text):
    print(f"labbook: {text}", file=sys.stderr, flush=True)


def installed(needs):
    """(need, `package version` of the alternative that is installed or None), for each of `needs`."""
    needs = list(needs)
    found = versions(tuple(sorted({name for need in needs for name in need.alternatives})))
    for need in needs:
        have = [f"{name} {found[name]}" for name in need.alternatives if name in found]
        yield need, have[0] if have else None


def available(package: str) -> bool:
    """Whether this distribution's lists have it; True while there are no lists."""
    policy = subprocess.run(["apt-cache", "policy", package], text=True, capture_output=True,
                            env={**os.environ, "LC_ALL": "C"}).stdout
    have_lists = any(Path("/var/lib/apt/lists").glob("*_Packages*"))
    return not have_lists or ("Candidate:" in policy and "Candidate: (none)" not in policy)


def choose(need: Need) -> str:
    """The alternative to install."""
    if not shutil.which("apt-get"):
        raise LabError(f"{need.name} is missing ({need.why}; for {', '.join(need.studies)}), and this "
                       "machine has no apt-get", remedy="labbook installs on Debian and Ubuntu only; "
                       "install it with your distribution's package manager")
    return next((name for name in need.alternatives if available(name)), need.alternatives[0])


def as_root() -> list[str]:
    """The words before a command that make it run as root; LabError if root is not available."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and not subprocess.run(["sudo", "-n", "true"],
                                                   capture_output=True).returncode:
        return ["sudo", "-n"]
    raise LabError("only root can install packages", remedy=(
        "Run as root, or give this user passwordless sudo (a line in /etc/sudoers.d: "
        f"{os.environ.get('USER', 'you')} ALL=(ALL) NOPASSWD: ALL)"))


def _install(packages, artifacts):
    """Install Debian packages, and fetch artifacts meanwhile, none more once the packages have failed. An error of
    the artifacts, and Ctrl-C, are raised once the packages are there."""
    words = as_root()
    with ThreadPoolExecutor(1) as pool:
        installing, stopped_by = pool.submit(_apt, packages, words), None
        try:
            fetch_artifacts(takewhile(lambda _: not (installing.done() and installing.exception()), artifacts))
        except BaseException as error:
            stopped_by = error
        while not installing.done():
            if stopped_by:
                _say("stopping as soon as the packages are installed")
            try:
                wait([installing])
            except KeyboardInterrupt as error:
                stopped_by = error
    installing.result()
    if stopped_by:
        raise stopped_by


def _apt(packages, words):
    """`words`: see as_root."""
    log = paths.build_dir() / "install.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()     # the user's, though root writes into it
    start = log.stat().st_size
    command = [*words, sys.executable, "-I", quiet_apt.__file__, str(log), *(packages or [quiet_apt.ONLY_FINISH])]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, start_new_session=True)    # without Ctrl-C
    if done.returncode == quiet_apt.WOULD_REMOVE:
        raise LabError(f"to install {' '.join(packages)} Debian would remove {', '.join(done.stdout.split())}, "
                       "so nothing was installed", remedy="Use another machine, or remove them "
                       "yourself if you do not need them")
    if done.returncode:
        with open(log, errors="replace") as file:
            file.seek(start)
            tail = "".join(file.readlines()[-15:])
        doing = f"install {' '.join(packages)}" if packages else "finish an installation that was cut off"
        command = f"apt-get update && apt-get install {' '.join(packages)}" if packages else "dpkg --configure -a"
        raise LabError(f"could not {doing}; {log} ends:\n{tail}".rstrip(), remedy=f"Try as root: {command}")


def is_here(artifact) -> bool:
    """Whether it is in the cache, whole and as pinned."""
    from labbook.lab.cache.build import is_whole

    folder = paths.cache_dir() / "artifacts" / artifact.folder
    return is_whole(folder) and (not hasattr(artifact, "is_sound") or artifact.is_sound(folder))


def fetch_artifacts(artifacts):
    for artifact in artifacts:
        if not is_here(artifact):
            _say(f"fetching {artifact}")
            artifact.fetch()
