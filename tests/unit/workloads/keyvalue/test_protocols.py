"""Prepared calls: what goes out is what the drivers would send, and each answer is looked at."""

import re
import socket
import struct
import subprocess
import sys
import time

import pytest
from here import calls_spec, null_server, target, wire  # noqa: F401 (fixtures)

from labbook.systems.null.server import protocol_files
from labbook.targets import key_of
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.protocols.thrift import idl
from labbook.workloads.keyvalue.wire.pairs import WrongValue, value_of
from labbook.workloads.keyvalue.wire.prepared import Template

PROTOCOLS = ["thrift", "cql", "mysql"]
VALUE = value_of(key_of(7), 100)


CLIENTS_ALONE = """
import sys
for name in ("bcrypt", "cryptography", "numpy", "pandas", "yaml"):
    sys.modules[name] = None  # cannot be imported
from labbook.workloads.clients.on_host import engine
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host import callers, contents, loader
spec = dict(addresses=["h"], port=1, rows=1, value_bytes=100, consistency="ONE", call_seconds=1)
for protocol in protocols.modules():
    protocols.calls(protocols.of_client(spec | {"protocol": protocol}, 0))
print(*(name for name, module in sys.modules.items() if module))
"""


def test_client_hosts_need_few_packages():
    """What is brought to a user's host for the clients, beside ipyparallel."""
    done = subprocess.run([sys.executable, "-c", CLIENTS_ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    packages -= {*sys.stdlib_module_names, "cython_runtime", "labbook_workload_thrift"}
    assert {name for name in packages if not name.startswith("_")} == {
        "cassandra", "geomet", "ijson", "labbook", "ply", "pymysql", "thriftpy2"}
    assert all(name.startswith(("labbook.workloads", "labbook.targets")) for name in done.stdout.split()
               if name.startswith("labbook."))


@pytest.fixture
def wired(null_server, wire):  # noqa: F811
    """Calls of a protocol connected to a null server, and a list of what they send."""
    return lambda protocol, **more: wire(null_server(protocol), **more)


def sent_for_row_7(wired, protocol, op, **more):
    """The last of two messages: row 0's, from which the other row's is made, and row 7's."""
    calls, sent = wired(protocol, **more)
    getattr(calls, op)(0)
    getattr(calls, op)(7)
    return calls, sent[-1]


def test_thriftpy2_decodes_what_is_sent(wired):
    from thriftpy2.protocol import TCyBinaryProtocol
    from thriftpy2.transport import TCyFramedTransport, TMemoryBuffer

    for op, name in (("read", "get"), ("write", "insert")):
        before = time.time_ns() // 1000
        calls, message = sent_for_row_7(wired, "thrift", op, consistency="QUORUM")
        protocol = TCyBinaryProtocol(TCyFramedTransport(TMemoryBuffer(message)))
        assert protocol.read_message_begin()[0] == name
        arguments = getattr(idl().Cassandra, f"{name}_args")()
        protocol.read_struct(arguments)
        assert arguments.key == key_of(7) and arguments.consistency_level == 2
        if op == "read":
            path = arguments.column_path
            assert (path.column_family, path.column) == ("pairs", b"value")
        else:
            assert arguments.column.value == VALUE
            assert before <= arguments.column.timestamp <= time.time_ns() // 1000


def test_cassandra_driver_would_send_the_same(wired):
    from cassandra import ConsistencyLevel
    from cassandra.protocol import ExecuteMessage, ProtocolHandler

    def encoded(number, values, **more):
        return ProtocolHandler.encode_message(
            ExecuteMessage(number.ljust(16), values, ConsistencyLevel.QUORUM, **more),
            0, 4, None, False)

    _, message = sent_for_row_7(wired, "cql", "read", consistency="QUORUM")
    assert message == encoded(b"SELECT", [key_of(7)], skip_meta=True)
    before = time.time_ns() // 1000
    _, message = sent_for_row_7(wired, "cql", "write", consistency="QUORUM")
    (stamp,) = struct.unpack(">q", message[-8:])
    assert message == encoded(b"INSERT", [key_of(7), VALUE], timestamp=stamp)
    assert before <= stamp <= time.time_ns() // 1000


@pytest.mark.parametrize("op, statement", [
    ("read", "SELECT VALUE FROM pairs WHERE NAME='{key}'"),
    ("write", "REPLACE INTO pairs (NAME, VALUE, TIMEUUID) VALUES ('{key}', '{value}', {time})"),
    ("update", "UPDATE pairs SET VALUE='{value}', TIMEUUID={time} WHERE NAME='{key}'")])
def test_mysql_is_sent_whole_statements(wired, op, statement):
    _, message = sent_for_row_7(wired, "mysql", op, client=12)
    length, command, text = struct.unpack("<I", message[:4])[0], message[4], message[5:].decode()
    pattern = re.escape(statement.format(key=key_of(7).decode(), value=VALUE.decode(), time="@"))
    found = re.fullmatch(pattern.replace("@", r"(\d{16})012"), text)  # the client's number last
    assert found and (length, command) == (len(text) + 1, 3)
    if op != "read":
        assert 0 <= time.time_ns() // 1000 - int(found[1]) < 10_000_000


def test_mysql_inserts_a_new_row_each_time(wired):
    pattern = (r"INSERT INTO pairs \(NAME, VALUE, TIMEUUID\) VALUES "
               rf"\('{key_of(7).decode()}(\d{{16}}012)', '{re.escape(VALUE.decode())}', (\d{{19}})\)")
    calls, message = sent_for_row_7(wired, "mysql", "insert", client=12)
    sent = []
    calls._send = lambda data: sent.append(bytes(data)) or calls._socket.sendall(data)
    calls.insert(7)
    found = [re.fullmatch(pattern, one[5:].decode()) for one in (message, sent[-1])]
    assert all(one[1] == one[2] for one in found) and found[0][1] < found[1][1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_for_another_row_is_a_wrong_value(wired, protocol):
    calls, _ = wired(protocol)
    answers = []
    receive = calls._receive
    calls._receive = lambda size: answers.append(receive(size)) or answers[-1]
    for row in (3, 7, 3):
        calls.read(row)
    calls._receive = lambda size: receive(size) and answers[0]
    with pytest.raises(WrongValue, match="row000003"):
        calls.read(7)
    calls._receive = receive
    calls.read(7)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_answer_is_decoded_for_all_rows(wired, protocol):
    calls, _ = wired(protocol)
    calls.read(0)
    calls.write(0)
    calls._decode = None  # any further decoding fails
    for row in (1, 2, 999_999, 0):
        calls.read(row)
        calls.write(row)


def test_an_answer_may_differ_in_its_time_and_its_key_only():
    known = Template(b"<row000000 at 2011>", 0, b"2011")
    assert known.fits(b"<row000001 at 2012>", 1)
    assert not known.fits(b"<row000001 at 201", 1)
    assert not known.fits(b"<row000002 at 2012>", 1)
    assert not known.fits(b"(row000001 at 2012>", 1)
    assert known.fits(b"<row000001 at 2013>", 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_in_pieces_are_put_together(wired, protocol):
    """One byte a packet, then a reply that equals the one checked before."""
    calls, _ = wired(protocol)
    whole = calls._receive
    calls._receive = lambda size: whole(1)
    if protocol == "mysql":
        calls._socket = OneByteAtATime(calls._socket)
    calls.read(0)
    calls.read(0)
    calls.write(0)
    calls._receive = whole
    calls._decode = None
    calls.read(0)


class OneByteAtATime:
    def __init__(self, whole):
        self.whole = whole

    def recv(self, size):
        return self.whole.recv(1)

    def close(self):
        self.whole.close()


@pytest.mark.parametrize("protocol", ["thrift", "cql"])
def test_a_server_that_hangs_is_an_error_within_the_calls_limit(protocol):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = target(silent.getsockname()[1], protocol)
        calls = protocols.calls(calls_spec(server, call_seconds=0.2))
        with pytest.raises(OSError) as caught:
            calls.connect()     # which nobody answers
        assert not calls.keeps_connection(caught.value)
        calls.close()


def thrift_timeout():
    body = struct.pack(">II", 0x80010002, 3) + b"get" + struct.pack(">IbhB", 0, 12, 4, 0) + b"\0"
    return struct.pack(">I", len(body)) + body


def cql_error(code: int, info: bytes = b"") -> bytes:
    body = struct.pack(">IH", code, 3) + b"why" + info
    return struct.pack(">BBhBI", 0x84, 0, 0, 0, len(body)) + body


LEVEL_AND_COUNTS = struct.pack(">HII", 4, 2, 1)
ANSWERED = [
    ("thrift", thrift_timeout(), "TimedOutException", True),
    ("cql", cql_error(0x1000, LEVEL_AND_COUNTS), "UnavailableErrorMessage", True),
    ("cql", cql_error(0x1001), "OverloadedErrorMessage", True),
    ("cql", cql_error(0x1200, LEVEL_AND_COUNTS + b"\0"), "ReadTimeoutErrorMessage", True),
    ("cql", cql_error(0x2200), "InvalidRequestException", True),
    ("cql", cql_error(0x2500, b"\0\x01x"), "PreparedQueryNotFound", False),  # prepared anew
    ("cql", cql_error(0x000A), "ProtocolException", False),
    ("mysql", b"\x09\0\0\1\xff\xbd\x04#40001", "OperationalError", True),  # 1213: a deadlock
]


@pytest.mark.parametrize("protocol, answer, name, keeps_connection", ANSWERED, ids=[a[2] for a in ANSWERED])
def test_what_a_server_raises_is_raised(wired, protocol, answer, name, keeps_connection):
    calls, _ = wired(protocol)
    calls.read(0)
    whole, calls._receive = calls._receive, lambda size: whole(size) and answer
    with pytest.raises(Exception) as caught:
        calls.read(0)
    assert type(caught.value).__name__ == name
    assert calls.keeps_connection(caught.value) is keeps_connection
    calls._receive = whole
    calls.read(0)


def test_an_update_that_changes_nothing_is_an_error(wired):
    calls, _ = wired("mysql")
    calls.update(0)
    whole = calls._receive
    calls._receive = lambda size: whole(size) and b"\x07\0\0\1\0\0\0\2\0\0\0"
    with pytest.raises(WrongValue, match="no row changed by this update"):
        calls.update(0)


def test_no_two_clients_write_the_same_time(wired):
    """Else an UPDATE would change nothing, and fail."""
    now = {wired("mysql", client=number)[0]._now()[16:] for number in range(3)}
    assert now == {b"000", b"001", b"002"}


def test_a_paper_may_bring_a_protocol(tmp_path, monkeypatch):
    folder = tmp_path / "papers" / "sixth" / "protocols"
    folder.mkdir(parents=True)
    (folder / "redis.py").touch()
    (folder / "__init__.py").touch()
    monkeypatch.setattr(protocols, "LIBRARY", tmp_path)
    found = protocols.modules.__wrapped__()
    assert found["redis"] == "labbook.papers.sixth.protocols.redis"
    assert set(found) == {"cql", "http", "mysql", "redis", "thrift"}


def test_a_protocol_says_what_it_can_do():
    assert protocols.that(BATCHES=True) == protocols.that(ANY_BYTES=True) == ["cql", "thrift"]
    for name in protocols.modules():
        kind = protocols.protocol(name)
        assert all(callable(getattr(kind, op)) for op in kind.OPS)
        assert kind.NULL_SERVER in protocol_files()
        levels = [level for of_op in kind.LEVELS.values() for level in of_op]
        assert set(kind.LEVELS) <= set(kind.OPS) and (not levels or kind.LEVEL in levels)
