"""Versions of Debian packages, as dpkg-query prints them."""

import os
import shutil

import pytest

from labbook.study.records import debian


@pytest.fixture
def dpkg(tmp_path, monkeypatch):
    """A dpkg-query that prints `text`, the only program on PATH."""
    def prints(text):
        program = tmp_path / "dpkg-query"
        program.write_text(f"#!/bin/sh\nprintf '%s' '{text}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}")
    return prints


def test_a_package_that_was_removed_is_not_installed(dpkg):
    """Its configuration is there still, and with it a version."""
    dpkg("mariadb-server config-files 1:10.11\nmysql-server installed 8.0\nnever not-installed \n")
    assert debian.installed(("mariadb-server", "mysql-server", "never")) == {"mysql-server": "8.0"}


def test_without_dpkg_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.installed(("bash",)) == {}


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="no Debian")
def test_debian_tells_the_versions():
    found = debian.installed(("bash", f"no-such-package-{os.getpid()}"))
    assert list(found) == ["bash"] and found["bash"]
