"""A real MySQL on a lab host: up, used, looked at, stopped, and dead at start."""

import pytest
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems import mysql
from labbook.systems.mysql import MySQL

ASK = """
import pymysql
connection = pymysql.connect(host="{0.address}", port={0.port}, user="labbook", database="labbook")
cursor = connection.cursor()
cursor.execute("SELECT VALUE FROM pairs WHERE NAME = 'name'")
print(cursor.fetchone()[0])
"""


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


def put(server, value: str):
    server.query(f"REPLACE INTO pairs VALUES ('name', '{value}', 1)", "labbook")


def got(server) -> tuple:
    return server.query("SELECT NAME, VALUE, TIMEUUID FROM pairs", "labbook")


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_a_server_from_up_to_destroy(lab, host, engine):
    server = MySQL(host, engine=engine, max_connections=90).up()
    server.create_table()
    put(server, "first")
    put(server, "second")
    assert got(server) == (("name", "second", "1"),)
    there = server.query("SELECT engine FROM information_schema.tables WHERE table_name='pairs'")
    assert there == ((engine,),)
    assert server.query("SELECT @@max_connections") == ((90,),)

    facts = server.facts()
    assert facts["version"] == "5.5.9" and facts["storage_engine"] == engine
    assert facts["innodb_flush_log_at_trx_commit"] == "1"
    assert 20 < facts["resident_mb"] < 500 and facts["threads"] > 5

    client = lab.host("client")
    client.put(ASK.format(server), "ask.py")
    assert client.run(f"{client.python} ask.py").stdout == "second\n"

    server.stop()
    assert not server.process.alive()
    server.start()
    assert got(server) == (("name", "second", "1"),)
    server.destroy()
    assert host.run(f"test -e {server.home}", check=False).exit_code == 1


def test_durability_reaches_the_server_and_commits_outlive_a_kill(host):
    server = MySQL(host, durability="periodic").up()
    assert server.facts()["innodb_flush_log_at_trx_commit"] == "0"
    server = MySQL(host).up()
    server.create_table()
    put(server, "kept")
    server.process.kill()
    server.start()
    assert got(server) == (("name", "kept", "1"),)


def test_the_servers_files_are_brought_where_the_cache_is_not_seen(host, monkeypatch):
    """As on a host that shares nothing: its cache folder has another name there."""
    real = host.run
    monkeypatch.setattr(host, "run", lambda command, **options: real(
        command.replace(str(mysql.server_files()), "/not-there"), **options))
    server = MySQL(host).up()
    running = real(f"readlink /proc/{server.process.pid}/exe").stdout.strip()
    assert running == str(host.root / "artifacts" / f"mysql-{mysql.VERSION}" / "bin" / "mysqld")


def test_a_broken_setting_is_in_the_error(host, monkeypatch):
    monkeypatch.setitem(mysql.FLUSH, "commit", "1\nno-such-setting=1")
    with pytest.raises(SystemFailure) as failure:
        MySQL(host).up()
    assert "no-such-setting" in failure.value.log and "ended with exit code" in str(failure.value)


def test_a_port_in_use_is_in_the_error(host):
    squatter = host.start("squatter", f"{host.python} -m http.server {MySQL.port}"
                                      f" --bind {host.address}")
    try:
        host.wait_for(lambda: host.run(f"ss -Hltn 'sport = :{MySQL.port}'").stdout.strip(),
                      "the squatter", 20, squatter)
        with pytest.raises(SystemFailure, match="Address already in use"):
            MySQL(host).up()
    finally:
        squatter.stop()
