"""How fast clients issue calls, whatever hangs, by host and by phase."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from call_stand_ins import calls

from labbook.workloads.clients.pace import limited_in_phases, paces, usual_turn


@pytest.mark.parametrize("slow", [None, (0, 0), (31, 20), (89, 38), (89, 39)])
@pytest.mark.parametrize("slow_s", [0.5, 10.0])
def test_one_slow_call_changes_nothing(slow, slow_s):
    assert paces(calls(slow=slow, slow_s=slow_s), ["c1"]).to_numpy() == pytest.approx(9000)


def test_several_stalls_are_left_out_and_slow_calls_are_not():
    stalled = calls(clients=1, of_client=100, slow=(0, 20))
    stalled.loc[stalled.index >= 70, "started_s"] += 5      # and another stall
    assert paces(stalled, ["c1"]).to_numpy() == pytest.approx(100)
    slow = calls(clients=1, of_client=100)
    slow["started_s"] += np.arange(100) // 10 * 0.1         # each tenth takes ten times as long
    assert 50 < paces(slow, ["c1"]).to_numpy().item() < 60
    assert usual_turn(pd.Series([2.0])) == 2 and usual_turn(pd.Series([2.0, 3.0])) == 2


def test_a_host_and_a_phase_have_paces_of_their_own():
    rows = calls(clients=4, hosts=("c1", "c2"))
    assert paces(rows, ["c1", "c2", "c3"]).to_numpy().tolist() == [[pytest.approx(200)] * 2 + [0]]
    rows["seconds"] /= np.where(rows["host"] == "c2", 2, 1)
    fast = rows[rows["host"] == "c2"].assign(started_s=lambda r: r.started_s / 2)
    mixed = pd.concat([rows[rows["host"] == "c1"], fast])
    phase = np.where(mixed["started_s"] < 0.1, "a", "b")
    found = paces(mixed, ["c1", "c2"], phase)
    assert list(found.index) == ["a", "b"] and found.to_numpy() == pytest.approx(np.array([[200, 400]] * 2))


def test_time_between_phases_is_no_turn():
    rows = calls(clients=2)
    second = rows["started_s"] > 0.199
    rows.loc[second, "started_s"] += 0.9
    found = paces(rows, ["c1"], np.where(second, "stat", "create"))
    assert found.to_numpy() == pytest.approx(200)


def test_at_a_rate_a_turn_is_from_start_to_start():
    """Of 10 calls a second, those of the first second were late and made at once after it."""
    due = np.arange(50) / 10
    began = np.where(due < 1, 1 + due / 1000, due)
    rows = pd.DataFrame({"client": 0, "host": "c1", "started_s": due, "ok": True,
                         "seconds": began + 0.01 - due, "service_s": 0.01})
    assert 9 < paces(rows, ["c1"]).to_numpy().item() < 13


def test_each_phase_is_held_against_the_ceiling():
    """For a second the clients call as fast as they can, and then wait for the servers."""
    fast = calls(clients=1, of_client=100)
    slow = calls(clients=1, of_client=100, seconds=0.1).assign(started_s=lambda r: r.started_s + 1)
    load = SimpleNamespace(rows=pd.concat([fast, slow], ignore_index=True),
                           metrics={"issued_per_s": [18.0], "clients_cpu_share": 0.1})
    assert not limited_in_phases(load, [], [[120.0]])
    assert limited_in_phases(load, [1.0], [[120.0]]) and not limited_in_phases(load, [1.0], [[150.0]])
    load.metrics["clients_cpu_share"] = 0.15       # in the first second 100 / 18 times as much
    assert limited_in_phases(load, [1.0], [[1000.0]]) and not limited_in_phases(load, [], [[1000.0]])
