"""Stores filled, warmed and checked; pages shared by web servers, or not."""

import math
from contextlib import ExitStack, contextmanager
from threading import Thread
from types import SimpleNamespace
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from here import calls_spec, null_server  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.systems.wiki.on_host.app import WikiApp
from labbook.workloads.keyvalue import contents, protocols
from labbook.workloads.keyvalue.contents import readable
from labbook.workloads.keyvalue.on_host import contents as on_host
from labbook.workloads.keyvalue.on_host.contents import count_shared
from labbook.workloads.keyvalue.wire.pairs import WrongValue


WARM = dict(rows=7, value_bytes=50, clients=20, requests=9, seconds=0.5, within=0.05)
SERVER = SimpleNamespace(protocol="cql", address="a")
SERVERS = SimpleNamespace(protocol="cql", address="a", addresses=["a", "b", "c"])


@pytest.fixture
def calls(monkeypatch):
    """What was called, in order; `costs`: the servers' CPU of a call in each round, µs, the last one for all further
    ones. A round has 50 calls, the first one twice as many."""
    made = SimpleNamespace(order=[], costs=[80.0], calls=0, most=math.inf, cpu_s=7.0, ended=False)

    @contextmanager
    def begin(crew, target, **arguments):
        made.order.append(("begin", arguments))

        def calls_made(seconds):
            cost, more = made.costs.pop(0) if len(made.costs) > 1 else made.costs[0], 50 if made.calls else 100
            more = min(more, made.most - made.calls)
            made.calls, made.cpu_s = made.calls + more, made.cpu_s + more * cost / 1e6
            return made.calls

        yield SimpleNamespace(calls_made=calls_made)
        made.ended = True

    monkeypatch.setattr(contents, "fill", lambda crew, target, **arguments: made.order.append(("fill", arguments)))
    monkeypatch.setattr(contents, "server_cpu", lambda target: made.cpu_s)
    monkeypatch.setattr(contents, "begin_pairs", begin)
    return made


def test_a_server_is_warm_once_its_calls_get_no_cheaper(calls):
    calls.costs = [400.0, 100.0, 60.0, 58.0, 50.0]
    warmth = contents.fill_and_warm("crew", SERVER, rounds=9, **WARM)
    assert warmth.stable and [each["both"] for each in warmth.costs] == pytest.approx([400, 100, 60, 58])
    (first, arguments), (_, clients) = calls.order
    assert first == "fill" and arguments["consistency"] == "ALL" and arguments["rows"] == 7
    assert (clients["op"], clients["clients"], clients["say_seconds"]) == ("both", 20, 0.5)
    assert clients["requests_at_most"] == 9 * 9 and calls.ended


@pytest.mark.parametrize("target, servers", [(SERVER, 1), (SERVERS, 3)])
def test_a_server_that_never_gets_warm_has_rounds_as_long_for_each_server(calls, target, servers):
    """Five nodes on one core had rounds of one node, in which each got a fifth of the calls and so little warmer that
    they counted as warm."""
    calls.costs = [1000.0 * 0.9 ** n for n in range(99)]
    assert contents.fill_and_warm("crew", target, rounds=2, **WARM).rounds == 2
    arguments = calls.order[1][1]
    assert arguments["say_seconds"] == 0.5 * servers and arguments["requests_at_most"] == 9 * 2 * servers
    assert arguments["seconds_at_most"] >= 2 * 0.5 * servers


def test_a_server_that_nobody_calls_any_more_does_not_count_as_warm(calls):
    """Its clients had made all calls that they may; what an idle server costs was taken for that of one call."""
    calls.costs, calls.most = [1000.0 * 0.5 ** n for n in range(99)], 150
    warmth = contents.fill_and_warm("crew", SERVER, rounds=6, **WARM)
    assert (warmth.rounds, warmth.stable) == (6, False)


def test_each_level_of_consistency_is_warmed(calls):
    """A read at ALL runs code that one at ONE does not."""
    calls.costs = [400.0, 400.0, 300.0, 300.0, 300.0]
    warmth = contents.fill_and_warm("crew", SERVER, levels=["ALL", "ONE"], rounds=9, **WARM)
    assert [(what, arguments["consistency"]) for what, arguments in calls.order] == [
        ("fill", "ALL"), ("begin", "ALL"), ("begin", "ONE")]
    assert (warmth.rounds, warmth.stable) == (4, True) and len(warmth.costs) == 4


def test_no_rounds_leave_a_server_cold_but_filled(calls):
    assert contents.fill_and_warm("crew", SERVER, rounds=0, **WARM).rounds == 0
    assert [what for what, _ in calls.order] == ["fill"]


class Crew:
    """Runs what is asked here."""

    hosts = ["here"]

    def run(self, function, *arguments, timeout):
        assert timeout > 0
        return [function(*(given[0] for given in arguments))]


class Target:
    protocol, address, port = "thrift", "127.0.0.1", 9


@pytest.mark.parametrize("protocol", ["thrift", "cql"])
def test_all_rows_of_a_server_that_has_them_are_there(null_server, protocol):  # noqa: F811
    assert on_host.count_wrong(calls_spec(null_server(protocol), rows=40)) == (0, "")


class Calls:
    """A table of ten rows that lacks some, or a server that answers late."""

    def __init__(self, spec):
        self.late = dict(spec["late"])

    def connect(self):
        pass

    close = connect

    def read(self, row):
        if row in (3, 7):
            raise WrongValue("no such row")
        if self.late.get(row):
            self.late[row] -= 1
            raise TimeoutError("late")

    @staticmethod
    def keeps_connection(error):
        return False


@pytest.mark.parametrize("late, wrong", [({}, 2), ({5: 2}, 2), ({5: 9}, 3)])
def test_what_is_missing_is_counted_and_what_is_late_is_asked_again(monkeypatch, late, wrong):
    monkeypatch.setattr(protocols, "calls", Calls)
    monkeypatch.setattr(protocols, "of_client", lambda spec, number: spec)
    monkeypatch.setattr("labbook.workloads.keyvalue.contents.spec_of",
                        lambda target, **given: {**given, "late": late})
    found = readable(Crew(), Target(), rows=10, value_bytes=100)
    assert (found["wrong"], found["readable"]) == (wrong, pytest.approx(1 - wrong / 10))
    assert found["first_wrong"].startswith("row 3: WrongValue")


def test_what_is_no_table_is_refused():
    with pytest.raises(InputError, match="rows"):
        readable(Crew(), Target(), rows=0, value_bytes=100)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(pages, address, port):
    """A web server of its own on an address of the loopback network."""
    with make_server(address, port, WikiApp(pages), handler_class=Quiet) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class Stale(dict):
    """A server's own copy, which learns of the others' pages only now and then."""

    def get(self, name, default=None):
        return super().get(name, default) if name.endswith("0") else default


@pytest.mark.parametrize("together, right", [(True, 4), (False, 0)])
def test_a_page_counts_when_all_others_have_it(together, right):
    shared = {}
    with ExitStack() as stack:
        port = stack.enter_context(served(shared, "127.0.0.1", 0))
        stack.enter_context(served(shared if together else {}, "127.0.0.2", port))
        assert count_shared(["127.0.0.1", "127.0.0.2"], port, 4) == right
    assert shared == {}


def test_one_stale_server_of_three_spoils_its_pages_only():
    shared = Stale()
    with ExitStack() as stack:
        port = stack.enter_context(served(shared, "127.0.0.1", 0))
        stack.enter_context(served(shared, "127.0.0.2", port))
        assert count_shared(["127.0.0.1", "127.0.0.2"], port, 10) == 1
