"""Values that nothing makes smaller: made, written one or many at once, read and checked."""

import struct
import zlib

import pytest
from here import null_server, wire  # noqa: F401 (fixtures)

from labbook.errors import InputError
from labbook.targets import MAX_ROWS, key_of
from labbook.workloads.keyvalue.protocols.thrift import idl
from labbook.workloads.keyvalue.spec import check_load
from labbook.workloads.keyvalue.wire.pairs import (
    MOST_RANDOM_BYTES,
    NOISE_PLACES,
    NOISE_STRIDE,
    WrongValue,
    check_value,
    value_of,
)
from labbook.workloads.keyvalue.wire.prepared import Template

PROTOCOLS = ["thrift", "cql"]
SIZE = 16384
LARGE = dict(value_bytes=SIZE, values="random")


def random_value(row, size=SIZE):
    return value_of(key_of(row), size, "random")


def test_they_do_not_compress_alone_or_together():
    values = [random_value(row) for row in range(500)]
    assert {len(value) for value in values} == {SIZE}
    for data in (values[0], b"".join(values)):
        assert len(zlib.compress(data, 9)) > 0.99 * len(data)
    assert len(zlib.compress(value_of(key_of(0), SIZE))) < 100  # as the others do


def test_each_rows_own_are_known_for_its_own():
    values = {random_value(row, 64) for row in range(2000)}
    assert len(values) == 2000
    assert NOISE_STRIDE % 2 and MAX_ROWS < NOISE_PLACES  # so no two rows begin in one place
    check_value(key_of(7), random_value(7), SIZE, "random")
    another = key_of(7) + random_value(8)[len(key_of(8)):]
    for wrong in (another, random_value(8), random_value(7)[:-1], value_of(key_of(7), SIZE)):
        with pytest.raises(WrongValue):
            check_value(key_of(7), wrong, SIZE, "random")


def test_a_template_has_the_noise_of_each_row():
    made = b"%b is %b at 2011" % (key_of(3), random_value(3))
    template = Template(made, 3, b"2011", SIZE - len(key_of(3)))
    for row in (4, 3, 999_999):
        right = b"%b is %b at 2012" % (key_of(row), random_value(row))
        assert template.fits(right, row)
        assert not template.fits(right[:500] + bytes([right[500] ^ 1]) + right[501:], row)


def test_the_smallest_have_no_noise():
    assert random_value(5, len(key_of(5))) == key_of(5)
    check_load(op="read", rows=1, value_bytes=len(key_of(0)), values="random")


@pytest.mark.parametrize("given, key", [
    ({"values": "zeros"}, "values"),
    ({"values": "random", "value_bytes": MOST_RANDOM_BYTES + 1}, "value_bytes")])
def test_what_is_not_allowed_is_named(given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        check_load(**dict(op="read", rows=1, value_bytes=100) | given)


@pytest.fixture
def wired(null_server, wire):  # noqa: F811
    """Calls of a protocol connected to a null server, and a list of what they send."""
    def make(protocol, server_values="random", **more):
        server = null_server(protocol, value_bytes=SIZE, values=server_values)
        return wire(server, **LARGE | more)

    return make


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_are_read_and_checked_and_decoded_once(wired, protocol):
    calls, _ = wired(protocol)
    calls.read(0)
    calls.write(0)
    calls._decode = None  # any further decoding fails
    for row in (1, 999_999, 0, 77):
        calls.read(row)
        calls.write(row)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_in_pieces_are_no_others(wired, protocol):
    calls, _ = wired(protocol)
    whole = calls._receive
    calls._receive = lambda size: whole(1000)
    calls.read(0)
    calls._decode = None
    calls.read(5)
    calls.read(6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_values_are_wrong(wired, protocol):
    calls, _ = wired(protocol, server_values="dots")
    with pytest.raises(WrongValue, match="row000003"):
        calls.read(3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_single_write_holds_the_value(wired, protocol):
    calls, sent = wired(protocol)
    for row in (0, 7):
        calls.write(row)
        assert sent[-1].count(random_value(row)) == 1 and sent[-1].count(key_of(row)) == 2


def test_thriftpy2_decodes_a_batch(wired):
    from thriftpy2.protocol import TCyBinaryProtocol
    from thriftpy2.transport import TCyFramedTransport, TMemoryBuffer

    calls, sent = wired("thrift", consistency="QUORUM")
    calls.write_many([5], 1)
    calls.write_many(range(3, 40), 1_700_000_000_000_000)
    protocol = TCyBinaryProtocol(TCyFramedTransport(TMemoryBuffer(sent[-1])))
    assert protocol.read_message_begin()[0] == "batch_mutate"
    decoded = idl().Cassandra.batch_mutate_args()
    protocol.read_struct(decoded)
    assert decoded.consistency_level == 2 and len(decoded.mutation_map) == 37
    for row in range(3, 40):
        (mutation,) = decoded.mutation_map[key_of(row)]["pairs"]
        column = mutation.column_or_supercolumn.column
        assert (column.name, column.timestamp) == (b"value", 1_700_000_000_000_000)
        assert column.value == random_value(row)


def test_cassandra_driver_would_send_the_same_many(wired):
    from cassandra.protocol import ExecuteMessage, ProtocolHandler

    calls, sent = wired("cql")
    calls.write_many([5], 1)
    calls.write_many(range(3, 40), 1_700_000_000_000_000)
    assert sent[-1] == b"".join(
        ProtocolHandler.encode_message(
            ExecuteMessage(b"INSERT".ljust(16), [key_of(row), random_value(row)], 1,
                           timestamp=1_700_000_000_000_000), number, 4, None, False)
        for number, row in enumerate(range(3, 40)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_then_one_and_one_then_many(wired, protocol):
    """What was changed for one kind of call is not left for the other."""
    calls, sent = wired(protocol)
    for _ in range(2):
        calls.write(2)
        assert struct.pack(">q", 1) not in sent[-1][-60:]  # a time of its own
        assert sent[-1][:4] == sent[0][:4]                 # a frame's stream, or its length
        calls.write_many([1, 2, 3], 1)
        calls.read(3)


def test_an_error_among_many_answers_is_raised_when_all_have_come(wired):
    calls, _ = wired("cql")
    ok = struct.pack(">BBhBII", 0x84, 0, 0, 8, 4, 1)
    body = struct.pack(">IH", 0x1001, 3) + b"why"
    overloaded = struct.pack(">BBhBI", 0x84, 0, 1, 0, len(body)) + body
    answers = iter([ok + overloaded[:4], overloaded[4:] + ok, ok])
    calls._receive = lambda size: next(answers)
    with pytest.raises(Exception) as caught:
        calls.write_many([1, 2, 3, 4], 1)
    assert type(caught.value).__name__ == "OverloadedErrorMessage"
    assert next(answers, None) is None and calls.keeps_connection(caught.value)


def test_a_batch_that_timed_out_is_raised(wired):
    calls, _ = wired("thrift")
    body = struct.pack(">II", 0x80010002, 12) + b"batch_mutate" + struct.pack(
        ">IbhB", 0, 12, 3, 0) + b"\0"
    receive = calls._receive
    calls._receive = lambda size: receive(size) and struct.pack(">I", len(body)) + body
    with pytest.raises(idl().TimedOutException) as caught:
        calls.write_many([1, 2], 1)
    assert calls.keeps_connection(caught.value)
