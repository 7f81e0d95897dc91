"""What all kinds of clients record of their calls."""

from types import SimpleNamespace

import pytest
from call_stand_ins import calls

from labbook.workloads.clients.cpu import client_limited
from labbook.workloads.clients.rows import call_metrics


def clients(*hosts, cores=None):
    return SimpleNamespace(uncertainty_s=0.0, server_cpu_s=None, hosts=[
        SimpleNamespace(name=name, limits={}, cores=cores or [number], is_remote=False)
        for number, name in enumerate(hosts)])


@pytest.mark.parametrize("slow", [None, (0, 0), (31, 20), (89, 39)])
def test_clients_that_use_up_their_core_are_limited_whatever_call_hangs(slow):
    """90 clients, 0.4 s, one core, and one of 3600 calls that takes 10 s."""
    made = call_metrics(calls(slow=slow), [0.38], clients("c1"))
    assert made["clients_cpu_share"] == pytest.approx(0.95)
    assert made["issued_per_s"] == pytest.approx([9000])
    assert client_limited(sum(made["issued_per_s"]), 12_000, 0) and client_limited(1, 12_000, made["clients_cpu_share"])


def test_the_busiest_host_is_reported():
    made = call_metrics(calls(hosts=("c1", "c2")), [0.1, 0.3], clients("c1", "c2"))
    assert made["issued_per_s"] == pytest.approx([4500, 4500])
    assert made["clients_cpu_share"] == pytest.approx(0.75)


def test_hosts_that_share_a_core_are_as_busy_as_all_of_them():
    """Each was held against a whole core: a core that was used up read as 0.5."""
    made = call_metrics(calls(hosts=("c1", "c2")), [0.16, 0.2], clients("c1", "c2", cores=[0]))
    assert made["clients_cpu_share"] == pytest.approx(0.9)
    made = call_metrics(calls(hosts=("c1", "c2")), [0.3, 0.3], clients("c1", "c2", cores=[0]))
    assert made["clients_cpu_share"] == 1


def test_each_phase_has_its_pace_and_the_share_is_of_the_busiest():
    rows = calls(clients=1)
    phase = rows["started_s"].lt(0.195).map({True: "create", False: "stat"})
    rows.loc[phase == "stat", "seconds"] *= 10
    rows.loc[phase == "stat", "started_s"] = 0.2 + (rows["started_s"] - 0.2) * 10
    made = call_metrics(rows, [0.2], clients("c1"), phase=phase)
    assert made["create_issued_per_s"] == pytest.approx([100])
    assert made["stat_issued_per_s"] == pytest.approx([10]) and "issued_per_s" not in made
    assert made["clients_cpu_share"] == pytest.approx(0.5)    # 5 ms of each call's 10 ms


def test_how_far_apart_clients_on_a_schedule_began_is_by_their_own_starts():
    """A call counts from when it was due, by which clients are as far apart as their turns."""
    rows = calls().assign(service_s=lambda found: found.seconds)
    late = rows.assign(seconds=rows.seconds + 5 * (rows.client == 1))       # due as before, begun 5 s later
    assert call_metrics(late, [0.3], clients("c1"))["start_spread_s"] == pytest.approx(5, abs=0.5)
    assert call_metrics(rows, [0.3], clients("c1"))["start_spread_s"] < 0.5
