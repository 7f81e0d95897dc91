"""Histories of registers and sets of files: every seeded fault in one is found, as what it is."""

from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.workloads.files.on_host import registers as on_host
from labbook.workloads.files.registers import Registers, calls_of
from labbook.workloads.histories.calls import LIST, OK, READ, THERE, UNKNOWN, WRITE, Call, metrics

ANOMALIES = ("lost_writes", "stale_reads", "phantom_values", "backward_reads", "own_backward_reads")
# Client 0 writes a register twice and adds two files; client 1 reads; a last client reads all at rest.
STEPS = {
    0: [[WRITE, "0/r0", "0.0", 0, 1, OK, ""], [WRITE, "0/set/0.1", THERE, 1, 2, OK, ""],
        [WRITE, "0/r0", "0.2", 4, 5, OK, ""], [WRITE, "0/set/0.3", THERE, 5, 6, OK, ""]],
    1: [[READ, "0/r0", "0.0", 2, 3, OK, ""], [LIST, "0/set/", ["0/set/0.1"], 3, 4, OK, ""],
        [READ, "0/r0", "0.2", 7, 8, OK, ""], [LIST, "0/set/", ["0/set/0.1", "0/set/0.3"], 8, 9, OK, ""]]}
LAST = [Call("last", READ, "0/r0", "0.2", 20, 21, last=True),
        Call("last", LIST, "0/set/", ("0/set/0.1", "0/set/0.3"), 20, 21, last=True)]


def found(steps=STEPS, last=LAST) -> dict:
    history = [call for number, made in steps.items() for call in calls_of(number, made)] + last
    return {name: count for name, count in metrics(history).items() if count and name in ANOMALIES}


def with_read(at: int, value, **more) -> dict:
    step = list(STEPS[1][at])
    step[2] = value
    return {0: STEPS[0], 1: [*STEPS[1][:at], step, *STEPS[1][at + 1:]]}


def test_a_right_history_raises_no_alarm():
    assert not found()


@pytest.mark.parametrize("steps, fault", [
    (with_read(2, "0.0"), {"stale_reads": 1}),
    (with_read(2, ""), {"phantom_values": 1}),          # a file whose content nobody wrote
    (with_read(2, "9.9"), {"phantom_values": 1}),
    (with_read(0, "0.2"), {"phantom_values": 1}),       # before its write began
    (with_read(3, ["0/set/0.3"]), {"stale_reads": 1, "backward_reads": 1, "own_backward_reads": 1}),
    (with_read(3, ["0/set/0.1", "0/set/0.3", "0/set/other"]), {"phantom_values": 1}),
])
def test_a_read_that_cannot_be_is_found(steps, fault):
    assert found(steps) == fault


def test_what_is_gone_at_the_end_is_lost():
    old = LAST[0]._replace(value="0.0")
    gone = LAST[1]._replace(value=("0/set/0.1",))
    assert found(last=[old, LAST[1]])["lost_writes"] == 1
    assert found(last=[LAST[0], gone])["lost_writes"] == 1
    assert found(last=[LAST[0]._replace(value=None), LAST[1]._replace(value=())])["lost_writes"] >= 3


def test_a_write_of_unknown_outcome_may_be_there_or_not():
    unsure = [[*step[:5], UNKNOWN, "blocked"] if step[1] == "0/set/0.3" else step for step in STEPS[0]]
    never = {0: unsure, 1: STEPS[1][:3]}
    assert not found({0: unsure, 1: STEPS[1]})
    assert not found(never, [LAST[0], LAST[1]._replace(value=("0/set/0.1",))])


def test_a_list_says_nothing_about_registers_nor_other_sets():
    other = {2: [[WRITE, "1/set/2.0", THERE, 0, 1, OK, ""], [LIST, "1/set/", ["1/set/2.0"], 2, 3, OK, ""]]}
    assert not found(STEPS | other)


def test_each_mount_has_its_last_read():
    crew = SimpleNamespace(hosts=[SimpleNamespace(name="c1"), SimpleNamespace(name="c2")], run=lambda function, specs, timeout: [
        [({"0/r0": "0.2"}, {"0/set/": ["0/set/0.1"]}) for _ in spec["paths"]] for spec in specs])
    made, times = Registers(crew, ["/a"], homes=["rank0/home"], keys=1), iter([5.0, 6.0])
    calls = made.last_reads([["/a", "/b"], ["/c"]], lambda: next(times))
    assert [(call.client, call.op, call.value) for call in calls] == [
        (f"last-{name}", op, value) for name in ("c1-0", "c1-1", "c2-0")
        for op, value in ((READ, "0.2"), (LIST, ("0/set/0.1",)))]
    assert all(call.last and (call.invoked_s, call.returned_s) == (5.0, 6.0) for call in calls)
    folder, = made.folders
    assert folder.startswith("rank0/home/") and on_host.folders_of({"folders": made.folders}, "/a") == [f"/a/{folder}"]


@pytest.mark.parametrize("wrong", ["clients", "calls_per_s", "seconds_at_most", "call_seconds"])
def test_clients_that_cannot_be_are_refused_by_name(wrong):
    given = dict(clients=1, calls_per_s=1.0, seed=1, seconds_at_most=1.0, call_seconds=1.0) | {wrong: 0}
    with pytest.raises(InputError, match=wrong):
        Registers(None, ["/a"], homes=["h"], keys=1).begin(**given)
    with pytest.raises(InputError, match="keys"):
        Registers(None, ["/a"], homes=["h"], keys=0)
