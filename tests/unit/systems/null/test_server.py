"""The null server speaks to the ordinary drivers, not only to our own calls."""

import resource
import signal
import socket
import struct
from contextlib import ExitStack

import pytest
from here import here_host, null_server  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.systems import find
from labbook.systems.null import server
from labbook.systems.null.server import NullServer
from labbook.workloads.keyvalue.protocols import modules
from labbook.workloads.keyvalue.protocols.thrift import idl

KEY = b"row000007"


def test_thriftpy2_reads_and_writes(null_server):
    from thriftpy2.rpc import client_context
    from thriftpy2.transport import TFramedTransportFactory

    port = null_server("thrift", value_bytes=40).port
    types = idl()
    with client_context(types.Cassandra, "127.0.0.1", port,
                        trans_factory=TFramedTransportFactory()) as client:
        client.set_keyspace("labbook")
        path = types.ColumnPath(column_family="pairs", column=b"value")
        column = client.get(KEY, path, 1).column
        assert (column.name, column.value) == (b"value", KEY.ljust(40, b"."))
        client.insert(KEY, types.ColumnParent(column_family="pairs"), column, 1)


@pytest.mark.parametrize("value_bytes", [9, 100, 300])
def test_pymysql_reads_and_writes(null_server, value_bytes):
    import pymysql

    port = null_server("mysql", value_bytes=value_bytes).port
    connection = pymysql.connect(host="127.0.0.1", port=port, user="labbook", database="labbook",
                                 autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT VALUE FROM pairs WHERE NAME='{KEY.decode()}'")
        assert cursor.fetchall() == ((KEY.decode().ljust(value_bytes, "."),),)
        assert cursor.execute("REPLACE INTO pairs (NAME, VALUE) VALUES ('a', 'b')") == 2
        assert cursor.execute("UPDATE pairs SET VALUE='b' WHERE NAME='a'") == 1



def test_a_session_of_cassandra_driver_reads_and_writes(null_server):
    """With the driver's defaults: it asks for later protocols first, and for the ring."""
    from cassandra.cluster import Cluster

    cluster = Cluster(["127.0.0.1"], port=null_server("cql", value_bytes=40).port)
    try:
        session = cluster.connect()
        read = session.prepare("SELECT value FROM labbook.pairs WHERE name=?")
        write = session.prepare("INSERT INTO labbook.pairs (name, value) VALUES (?, ?)")
        assert session.execute(read, [KEY]).one().value == KEY.ljust(40, b".")
        assert session.execute(write, [KEY, b"b"]).one() is None
    finally:
        cluster.shutdown()


def test_it_is_a_system_with_checked_settings(tmp_path):
    assert find("null") is NullServer
    with pytest.raises(InputError, match="protocol.*mysql.*thrift"):
        NullServer(here_host(tmp_path, "server"), protocol="mongo")


def test_rubbish_ends_that_connection_only(null_server):
    server = null_server("thrift", value_bytes=40)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as rubbish:
        rubbish.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert rubbish.recv(100) == b""
    test_thriftpy2_reads_and_writes(lambda protocol, value_bytes: server)


def test_a_client_that_is_gone_before_its_greeting_ends_no_other(null_server):
    server = null_server("mysql", value_bytes=40)
    server.server.send_signal(signal.SIGSTOP)
    gone = socket.create_connection(("127.0.0.1", server.port), timeout=5)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))   # closed by a reset
    gone.close()
    server.server.send_signal(signal.SIGCONT)
    test_pymysql_reads_and_writes(lambda protocol, value_bytes: server, 40)


def test_more_clients_than_a_shells_limit_of_open_files(null_server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        port = null_server("mysql").port
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with ExitStack() as connections:
        for _ in range(300):
            one = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            assert b"5.5.9-null" in one.recv(1000)


def test_a_paper_brings_a_protocol_of_its_own(tmp_path, monkeypatch):
    own = tmp_path / "of_test" / "null_servers" / "echo.py"
    own.parent.mkdir(parents=True)
    own.write_text("def answers(value_of):\n    return b'', value_of\n")
    monkeypatch.setattr(server, "PAPERS", tmp_path)
    assert server.protocol_files()["echo"] == own
    assert {"thrift", "cql", "mysql", "http", "keystone"} <= set(server.protocol_files())
    assert set(modules()) <= set(server.protocol_files())
