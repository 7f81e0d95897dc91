"""From settings to MySQL's configuration, and the server out of its jar."""

import io
import zipfile
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import InputError, LabError
from labbook.systems import mysql
from labbook.systems.mysql import MySQL, configuration, table_definition, unpack

HOME, SERVER = PurePosixPath("/srv/labbook/mysql"), PurePosixPath("/cache/mysql-5.5.9")
HOST = SimpleNamespace(name="server", address="198.18.0.2", root=HOME.parent)


def configured(**settings) -> dict:
    text = configuration(MySQL(HOST, **settings).settings, HOST.address, HOME, SERVER, 128)
    header, *lines = text.splitlines()
    assert header == "[mysqld]"
    return dict(line.partition("=")[::2] for line in lines)


def test_the_server_listens_on_the_data_network_and_writes_below_its_home():
    made = configured()
    assert made["bind-address"] == HOST.address and made["port"] == "3306"
    for key in ("datadir", "tmpdir", "socket", "pid-file"):
        assert made[key].startswith(str(HOME)), key
    assert made["lc-messages-dir"] == f"{SERVER}/share" and "skip-name-resolve" in made
    assert made["innodb_buffer_pool_size"] == "128M" and made["default-storage-engine"] == "InnoDB"


@pytest.mark.parametrize("settings, flush", [
    ({}, "1"), ({"durability": "commit"}, "1"), ({"durability": "periodic"}, "0")])
def test_durability_is_innodbs_flush(settings, flush):
    assert configured(**settings)["innodb_flush_log_at_trx_commit"] == flush


def test_the_papers_table():
    assert table_definition("pairs", "MyISAM") == (
        "CREATE TABLE pairs (NAME VARCHAR(100) UNIQUE, VALUE VARCHAR(100), TIMEUUID LONG)"
        " ENGINE=MyISAM")


@pytest.mark.parametrize("settings, told", [
    ({"version": "5.6"}, "version: '5.6' is not allowed .*5.5.9"),
    ({"max_connections": 0}, "max_connections"),
    ({"flush": True}, "unknown key"),
])
def test_wrong_settings(settings, told):
    with pytest.raises(InputError, match=told):
        MySQL(HOST, **settings)


def packed(files: dict) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        for name, content in files.items():
            jar.writestr(name, content)
    return buffer.getvalue()


def test_unpack_takes_the_server_its_messages_and_empty_data(tmp_path):
    inner = {"META-INF/MANIFEST.MF": "-"}
    (tmp_path / "mysql-connector-mxj-db-files-5.0.12.jar").write_bytes(packed({
        "5-5-9/Linux-x86_64/mysqld": "the server", "5-5-9/Win-x86/mysqld.exe": "another",
        "5-5-9/share_dir.jar": packed(inner | {"share/english/errmsg.sys": "messages"}),
        "5-5-9/data_dir.jar": packed(inner | {"mysql/user.frm": "users"}),
    }))
    folder = tmp_path / "server"
    folder.mkdir()
    unpack(tmp_path, folder)
    files = {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
    assert files == {"bin/mysqld", "share/english/errmsg.sys", "data/mysql/user.frm"}
    assert (folder / "bin/mysqld").stat().st_mode & 0o111


def test_another_processor_is_told(monkeypatch):
    monkeypatch.setattr(mysql.platform, "machine", lambda: "aarch64")
    with pytest.raises(LabError, match="x86_64 only, this is aarch64"):
        mysql.server_files()
