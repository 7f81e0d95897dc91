"""Every row of a table looked at: how many are there with their values."""

import pytest
from here import calls_spec, null_server  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host import contents as on_host
from labbook.workloads.keyvalue.on_host.pairs import WrongValue
from labbook.workloads.keyvalue.contents import readable


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
