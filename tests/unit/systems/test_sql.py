"""From settings to a SQL server's configuration, and MySQL out of its jar."""

import io
import stat
import zipfile
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import InputError, LabError
from labbook.systems import find, sql
from labbook.systems.sql import MariaDB, MySQL, configuration, table_definition, unpack

HOME = PurePosixPath("/srv/labbook/mysql")
HOST = SimpleNamespace(name="server", address="198.18.0.2", root=HOME.parent)


def configured(kind=MySQL, as_root=True, own=None, **settings) -> dict:
    text = configuration(kind(HOST, **settings).settings, HOST.address, HOME, buffer_pool_mb=128,
                         as_root=as_root, **own or {})
    header, *lines = text.splitlines()
    assert header == "[mysqld]"
    return dict(line.partition("=")[::2] for line in lines)


def test_the_server_listens_on_the_data_network_and_writes_below_its_home():
    made = configured(own={"lc-messages-dir": "/cache/share"})
    assert made["bind-address"] == HOST.address and made["port"] == "3306"
    for key in ("datadir", "tmpdir", "socket", "pid-file"):
        assert made[key].startswith(str(HOME)), key
    assert made["lc-messages-dir"] == "/cache/share" and "skip-name-resolve" in made
    assert made["innodb_buffer_pool_size"] == "128M" and made["default-storage-engine"] == "InnoDB"


@pytest.mark.parametrize("settings, flush", [
    ({}, "1"), ({"durability": "commit"}, "1"), ({"durability": "periodic"}, "0")])
@pytest.mark.parametrize("kind", [MySQL, MariaDB])
def test_durability_is_innodbs_flush(kind, settings, flush):
    assert configured(kind, **settings)["innodb_flush_log_at_trx_commit"] == flush


def test_root_must_be_asked_for_and_only_root_may():
    assert configured(as_root=True)["user"] == "root"
    assert "user" not in configured(as_root=False)


def test_both_eras_have_the_same_settings_but_for_the_version():
    assert find("mariadb") is MariaDB
    assert set(MySQL.SETTINGS) - set(MariaDB.SETTINGS) == {"version"}
    assert configured(MariaDB) == configured(MySQL)
    assert MySQL.protocol == MariaDB.protocol == "mysql"


def test_the_papers_table():
    assert table_definition("pairs", "MyISAM") == (
        "CREATE TABLE pairs (NAME VARCHAR(100) UNIQUE, VALUE VARCHAR(100), TIMEUUID LONG)"
        " ENGINE=MyISAM")


def test_the_one_account_has_a_password_of_its_own_that_only_its_user_can_read(tmp_path):
    server = MariaDB(here_host(tmp_path, "db1"))
    server.provide()
    server.put_configuration()
    first = server.password
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in Path(server.home).iterdir()
             if first in file.read_text()}
    assert modes == {"init.sql": 0o600, "password": 0o600} and len(first) > 24
    assert MariaDB(server.host).password == first   # an object of another process
    statements = Path(server.home, "init.sql").read_text()
    assert "DELETE FROM mysql.global_priv WHERE User NOT IN ('labbook', 'mariadb.sys');" in statements
    assert statements.count("GRANT") == 1 and "IDENTIFIED BY ''" not in statements
    server.put_configuration()
    assert server.password != first and first not in repr(vars(server.settings))


@pytest.mark.parametrize("settings, message", [
    ({"version": "5.6"}, "version: '5.6' is not allowed .*5.5.9"),
    ({"max_connections": 0}, "max_connections"),
    ({"flush": True}, "unknown key"),
])
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        MySQL(HOST, **settings)


@pytest.mark.parametrize("lost", [False, True])
def test_the_data_of_a_stopped_server_are_copied_and_others_cannot_read_the_archive(tmp_path, lost):
    host, folder, modes = here_host(tmp_path, "db 1"), tmp_path / "seed", []
    data = Path(host.root) / "data"
    data.mkdir()
    for name in ("ibdata1", "ibtmp1"):
        (data / name).write_text(name)
    get = host.get

    def look(remote, local):
        modes.extend(stat.S_IMODE(Path(file).stat().st_mode) for file in (remote, local))
        if lost:
            raise LabError("connection lost")
        return get(remote, local)

    host.get = look
    if lost:
        with pytest.raises(LabError, match="connection lost"):
            sql.fetch_data(host, data, folder, ["ibtmp1"])
    else:
        sql.fetch_data(host, data, folder, ["ibtmp1"])
        assert [file.name for file in folder.iterdir()] == ["ibdata1"]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes == [0o600, 0o600]
    assert [file.name for file in Path(host.root).iterdir()] == ["data"]    # no archive


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


def test_another_processor_is_an_error(monkeypatch):
    """The processor is the host's, which may not be this machine's."""
    monkeypatch.setattr(MySQL, "run", lambda *_: SimpleNamespace(stdout="aarch64\n"))
    with pytest.raises(LabError, match="exists for x86_64 only, and server is aarch64"):
        MySQL(HOST).deploy()
