"""What a client of Keystone did, as a history."""

from labbook.workloads.histories.calls import LIST, OK, READ, THERE, UNKNOWN, WRITE, metrics
from labbook.workloads.keystone.history import calls_of, last_lists

U1, U2 = "labbook-1", "labbook-2"


def fields(steps):
    return [(call.op, call.key, call.value, call.invoked_s, call.returned_s, call.outcome)
            for call in calls_of(3, steps)]


def test_a_user_is_written_and_read_back():
    assert fields([(0.0, 2.0, "", U1, 1.5, None)]) == [
        (WRITE, U1, THERE, 0.0, 1.5, OK), (READ, U1, THERE, 1.5, 2.0, OK)]
    assert fields([(0.0, 2.0, "NotFound: no such user", U1, 1.5, None)])[1][2] is None
    assert len(fields([(0.0, 2.0, "GatewayTimeout: 504", U1, 1.5, None)])) == 1
    assert calls_of(3, [(0.0, 2.0, "", U1, 1.5, None)])[0].client == "3"


def test_a_creation_without_an_answer_may_have_had_an_effect():
    assert fields([(0.0, 2.0, "OutOfTime: no answer", U1, None, None)]) == [
        (WRITE, U1, THERE, 0.0, 2.0, UNKNOWN)]
    assert fields([(0.0, 2.0, "ConnectFailure: before it was asked for", "", None, None)]) == []


def test_a_list_reads_all_users():
    assert fields([(3.0, 0.5, "", "", 1.5, [U1, U2])]) == [(LIST, "", (U1, U2), 3.0, 3.5, OK)]


def test_each_node_is_asked_at_the_end():
    made = calls_of(0, [(0.0, 2.0, "", U1, 1.5, None), (5.0, 2.0, "", U2, 6.0, None)])
    complete, lost = {"admin", U1, U2}, {"admin", U1}
    assert metrics([*made, *last_lists({"db1": complete, "db2": complete}, 9, 10)])["lost_writes"] == 0
    assert metrics([*made, *last_lists({"db1": complete, "db2": lost}, 9, 10)])["lost_writes"] == 1
    strange = metrics([*made, *last_lists({"db1": complete | {"labbook-3"}}, 9, 10)])
    assert strange["phantom_values"] == 1
