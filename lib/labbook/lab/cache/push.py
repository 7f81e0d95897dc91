"""Folders of this machine's cache, brought to hosts once and checked whenever they are used."""

import shlex
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.cache.build import COMPLETE
from labbook.lab.ssh import transfer

SAME_SIZES = f"""import json, os, sys
os.chdir(sys.argv[1])
sys.exit(any(os.path.getsize(f) != n for f, n in json.load(open("{COMPLETE}")).items()))"""


def push(host, folder: Path) -> PurePosixPath:
    """Where `folder`, from `shelf.made`, is on the host: copied if it is not there.

    A user's own host may have it ready below its root folder, and must if no software may be
    copied there: LabError.
    """
    kept, place = _places(host, folder)
    with transfer.alone(host, place):
        if _is_there(host, kept, folder, sizes=host.is_remote):
            return kept
        if not host.may("software"):
            raise LabError(
                f"{host.name}: {kept} is not there or not whole, and nothing allows to copy it",
                remedy=f"Copy {folder} there, or add software to the host's `allow`")
        if not _is_there(host, place, folder):
            transfer.send(host, folder, place)
    return place


def _places(host, folder):
    """Where the host may have it ready, and where it is copied to."""
    if not host.is_remote:
        return PurePosixPath(folder), host.root / "artifacts" / folder.name
    lab = host.root.parent
    return lab.parent / "artifacts" / folder.name, lab / "artifacts" / folder.name


def _is_there(host, place, folder, sizes=False) -> bool:
    """By the list of its files; with `sizes`, which whoever copied it may have got wrong, by these."""
    mark = shlex.quote(str(place / COMPLETE))
    seen = host.run(f"cat {mark}", check=False)
    if seen.exit_code or seen.stdout.strip() != (folder / COMPLETE).read_text().strip():
        return False
    check = shlex.join([host.python, "-c", SAME_SIZES, str(place)])
    return not sizes or host.run(check, check=False).exit_code == 0
