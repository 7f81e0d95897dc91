"""Copy folders of this machine's cache to hosts, once; check the copy at each use."""

import shlex
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.cache.build import COMPLETE
from labbook.lab.ssh import transfer

SAME_SIZES = f"""import json, os, sys
os.chdir(sys.argv[1])
sys.exit(any(os.path.getsize(f) != n for f, n in json.load(open("{COMPLETE}")).items()))"""


def push(host, folder: Path) -> PurePosixPath:
    """Path on the host of a `folder` from build_once; copies it if it is not there.

    On a user's own host a copy below its root folder is used if it is complete. LabError when there
    is none and no software may be copied there.
    """
    prepared, place = _places(host, folder)
    with transfer.alone(host, place):
        if _is_there(host, prepared, folder, sizes=host.is_remote):
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


def _is_there(host, place, folder, sizes=False) -> bool:
    """Compare complete.json; with `sizes` also the sizes of the files, for copies made by hand."""
    mark = shlex.quote(str(place / COMPLETE))
    listing = host.run(f"cat {mark}", check=False)
    if listing.exit_code or listing.stdout.strip() != (folder / COMPLETE).read_text().strip():
        return False
    check = shlex.join([host.python, "-c", SAME_SIZES, str(place)])
    return not sizes or host.run(check, check=False).exit_code == 0
