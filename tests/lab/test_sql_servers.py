"""A real MySQL and MariaDB on a lab host: up, used, looked at, stopped, and dead at start."""

import shlex

import pytest
from listeners import check_listeners
from small_labs import describe, new_id, put_as

from labbook.errors import LabError, SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems import sql
from labbook.systems.sql import MariaDB, MySQL

ASK = """
import pymysql
connection = pymysql.connect(host="{0.address}", port={0.port}, user="labbook", password="{0.password}",
    database="labbook")
cursor = connection.cursor()
cursor.execute("SELECT VALUE FROM pairs WHERE NAME = 'name'")
print(cursor.fetchone()[0])
"""
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
both = pytest.mark.parametrize("kind", [MySQL, MariaDB], ids=["mysql", "mariadb"])


@pytest.fixture(scope="module")
def lab():
    description = describe({"server": {"memory": "1G"}, "client": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture
def host(lab):
    host = lab.host("server")
    yield host
    MySQL(host).destroy()
    MariaDB(host).destroy()


def put(server, value: str):
    server.query(f"REPLACE INTO pairs VALUES ('name', '{value}', 1)", "labbook")


def got(server) -> tuple:
    return server.query("SELECT NAME, VALUE, TIMEUUID FROM pairs", "labbook")


@pytest.mark.parametrize("kind, engine, version", [
    (MySQL, "InnoDB", "5.5.9"), (MySQL, "MyISAM", "5.5.9"),
    (MariaDB, "InnoDB", "MariaDB"), (MariaDB, "MyISAM", "MariaDB")])
def test_a_server_from_up_to_destroy(lab, host, kind, engine, version):
    server = kind(host, engine=engine, max_connections=90).up()
    server.create_table()
    put(server, "first")
    put(server, "second")
    assert got(server) == (("name", "second", "1"),)
    server.query("UPDATE pairs SET VALUE = 'third', TIMEUUID = 2 WHERE NAME = 'name'", "labbook")
    assert got(server) == (("name", "third", "2"),)
    there = server.query("SELECT engine FROM information_schema.tables WHERE table_name='pairs'")
    assert there == ((engine,),)
    assert server.query("SELECT @@max_connections") == ((90,),)

    facts = server.facts()
    assert version in facts["version"] and facts["storage_engine"] == engine
    assert facts["innodb_flush_log_at_trx_commit"] == "1" and facts["log_bin"] == "OFF"
    assert 20 < facts["resident_mb"] < 500 and facts["threads"] > 5

    check_listeners([host], "mysql" if kind is MySQL else "mariadb")
    client = lab.host("client")
    client.put(ASK.format(server), "ask.py")
    assert client.run(f"{client.python} ask.py").stdout == "third\n"

    server.stop()
    assert not server.process.alive()
    server.start()
    assert got(server) == (("name", "third", "2"),)
    server.destroy()
    assert host.run(f"test -e {server.home}", check=False).exit_code == 1


@both
def test_nobody_gets_in_without_the_password(lab, host, kind):
    """From another host, from its own, and by its socket."""
    server = kind(host).up()
    client = lab.host("client")
    for where, how in ((client, f"host={server.address!r}"), (host, f"host={server.address!r}"),
                       (host, f"unix_socket={str(server.home / 'mysqld.sock')!r}")):
        for user in ("labbook", "root", "nobody"):
            done = where.run(shlex.join([where.python, "-c", "import pymysql; "
                                         f"pymysql.connect(user={user!r}, {how})"]), check=False)
            assert done.exit_code and "Access denied" in done.stderr, (user, how, done)


@both
def test_durability_reaches_the_server_and_commits_outlive_a_kill(host, kind):
    server = kind(host, durability="periodic").up()
    assert server.facts()["innodb_flush_log_at_trx_commit"] == "0"
    server = kind(host).up()
    server.create_table()
    put(server, "kept")
    server.process.kill()
    server.start()
    assert got(server) == (("name", "kept", "1"),)


@both
def test_an_ordinary_user_may_run_it(host, kind, monkeypatch):
    """As on a host that is logged in to without being root."""
    host.run("rm -rf processes && mkdir processes && chmod 777 . processes")
    real = host.run
    monkeypatch.setattr(host, "put", put_as("65534", host))
    monkeypatch.setattr(host, "run", lambda command, **options: real(
        f"{NOBODY} sh -c {shlex.quote(command)}", **options))
    server = kind(host).up()
    server.create_table()
    put(server, "ours")
    assert got(server) == (("name", "ours", "1"),)
    assert real(f"stat -c %u /proc/{server.process.pid}").stdout.strip() == "65534"
    server.destroy()


def test_the_servers_files_are_copied_to_a_host_that_does_not_see_the_cache(host, monkeypatch):
    """As on a host that shares nothing: its cache folder has another name there."""
    real = host.run
    monkeypatch.setattr(host, "run", lambda command, **options: real(
        command.replace(str(sql.mysql_files()), "/not-there"), **options))
    server = MySQL(host).up()
    running = real(f"readlink /proc/{server.process.pid}/exe").stdout.strip()
    assert running == str(host.root / "artifacts" / f"mysql-{sql.MYSQL_VERSION}" / "bin" / "mysqld")


@both
def test_a_broken_setting_is_in_the_error(host, kind, monkeypatch):
    """MySQL's, and MariaDB's when it fills its data directory, which comes first."""
    monkeypatch.setitem(sql.FLUSH, "commit", "1\nno-such-setting=1")
    with pytest.raises((SystemFailure, LabError)) as failure:
        kind(host).up()
    message = f"{failure.value} {getattr(failure.value, 'log', '')}"
    assert "no-such-setting" in message and "ended with exit code" in message


@both
def test_a_port_in_use_is_in_the_error(host, kind):
    squatter = host.start("squatter", f"{host.python} -m http.server {kind.port}"
                                      f" --bind {host.address}")
    try:
        host.wait_for(lambda: host.run(f"ss -Hltn 'sport = :{kind.port}'").stdout.strip(),
                      "the squatter", 20, squatter)
        with pytest.raises(SystemFailure, match="Address already in use"):
            kind(host).up()
    finally:
        squatter.stop()
