"""Copy folders of this machine's cache to hosts, once; check the copy at each use."""

import shlex
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.cache.build import COMPLETE
from labbook.lab.on_host import folder_digest
from labbook.lab.ssh import transfer

SAME_SIZES = f"""import json, os, sys
os.chdir(sys.argv[1])
sys.exit(any(os.path.getsize(f) != n for f, n in json.load(open("{COMPLETE}")).items()))"""
DIGEST_SECONDS = 600
_same: set[tuple] = set()   # copies made by hand whose contents this process has compared


def push(host, folder: Path) -> PurePosixPath:
    """Path on the host of a `folder` from build_once; copies it if it is not there.

    On a user's own host a copy below its root folder is used if all its files are those of `folder`, by
    SHA-256, at a process's first use of it. LabError when there is none and no software may be copied
    there.
    """
    prepared, place = _places(host, folder)
    with transfer.alone(host, place):
        if _is_there(host, prepared, folder, by_hand=host.is_remote):
            return prepared
        if not host.may("software"):
            raise LabError(
                f"{host.name}: {prepared} is not there or not whole, and nothing allows to copy it",
                remedy=f"Copy {folder} there, or add software to the host's `allow`")
        if not _is_there(host, place, folder):
            transfer.send(host, folder, place)
    return place


def _places(host, folder):
    """(where the host's owner may have put it, where it is copied to)"""
    if not host.is_remote:
        return PurePosixPath(folder), host.root / "artifacts" / folder.name
    lab = host.root.parent
    return lab.parent / "artifacts" / folder.name, lab / "artifacts" / folder.name


def _is_there(host, place, folder, by_hand=False) -> bool:
    """Compare complete.json; of copies made `by_hand` also the files' contents, and later their sizes."""
    mark = shlex.quote(str(place / COMPLETE))
    listing, listed = host.run(f"cat {mark}", check=False), (folder / COMPLETE).read_text().strip()
    if listing.exit_code or listing.stdout.strip() != listed:
        return False
    if not by_hand:
        return True
    check = shlex.join([host.python, "-c", SAME_SIZES, str(place)])
    return host.run(check, check=False).exit_code == 0 and _same_contents(host, place, folder, listed)


def _same_contents(host, place, folder, listed: str) -> bool:
    known = host.login and (host.login.address, host.login.port), place, listed
    if known not in _same:
        program = Path(folder_digest.__file__).read_text()
        command = shlex.join([host.python, "-", str(place), COMPLETE])
        there = host.run(f"{command} <<'LABBOOK-END'\n{program}\nLABBOOK-END", timeout=DIGEST_SECONDS, check=False)
        if there.exit_code or there.stdout.strip() != folder_digest.digest(folder, COMPLETE):
            return False
        _same.add(known)
    return True
