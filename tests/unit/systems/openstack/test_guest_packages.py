"""The list of a guest's packages from apt."""

import os

import pytest

from labbook.systems.openstack import guest_packages

URI = "'http://example/pool/a_1.deb' a_1.deb 10 SHA256:x\n"


@pytest.fixture
def apt_calls(tmp_path, monkeypatch):
    """Arguments of each call of a fake apt with two files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "Packages").write_text("one")
    monkeypatch.setattr(guest_packages, "APT", (str(tmp_path / "lists"),))
    calls = []

    def run(command, cwd=None):
        calls.append(command)
        return "  Depends: linux-image-6.1-cloud\n" if command[0] == "apt-cache" else URI

    monkeypatch.setattr(guest_packages, "_run", run)
    return calls


def test_apt_runs_once_for_each_state_of_its_lists(apt_calls, tmp_path):
    wanted = guest_packages.wanted()
    assert wanted == {"files": ["a_1.deb"], "kernel": "linux-image-6.1-cloud"} and len(apt_calls) == 2
    assert guest_packages.wanted() == wanted and len(apt_calls) == 2
    (tmp_path / "lists" / "Packages").write_text("another")
    assert guest_packages.wanted() == wanted and len(apt_calls) == 4


def test_only_the_answer_is_cached(apt_calls, tmp_path):
    guest_packages.wanted()
    files = [name for _, _, names in os.walk(tmp_path / "cache") for name in names]
    assert sorted(name for name in files if not name.startswith("guest-")) == ["complete.json", "wanted.json"]
