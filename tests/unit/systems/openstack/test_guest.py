"""The files of the guest's image in the cache: who can read them."""

import gzip
from pathlib import Path
from types import SimpleNamespace

from labbook.systems.openstack import guest



def modes(folder: Path) -> set[int]:
    return {file.stat().st_mode & 0o777 for file in folder.glob("*.raw")}


def test_images_are_their_owners_alone(tmp_path):
    with gzip.open(tmp_path / guest.PACKED, "wb") as packed:
        packed.write(bytes(1 << 20))
    guest._images(tmp_path, (1 / 1024, ))
    assert [file.name for file in tmp_path.iterdir()] == ["guest-0.000976562gb.raw"]
    assert modes(tmp_path) == {0o600}


def test_those_that_an_earlier_version_left_are_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "packages", lambda: Path("debs"))
    monkeypatch.setattr(guest, "build_once", lambda name, fill: tmp_path)
    for gb in (0.5, 1):
        (tmp_path / f"guest-{gb:g}gb.raw").touch(0o644)
    (tmp_path / "guest-0.5gb.raw").chmod(0o644)
    made = guest.make(SimpleNamespace(), (0.5, 1))
    assert made.folder == tmp_path and modes(tmp_path) == {0o600}
