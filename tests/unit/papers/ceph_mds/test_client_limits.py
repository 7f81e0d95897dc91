"""The phases that clients limited: each by its own window of their cores' time, and its own ceiling."""

import pandas as pd
import pytest

from labbook.papers.ceph_mds import client_limits
from labbook.workloads.files.load import PHASES as PATTERN_PHASES

PHASES = pd.DataFrame({"phase": ["sequential_create", "random_create"], "from_s": [1000.0, 1005.0],
                       "to_s": [1004.0, 1007.0], "operations": [100, 100]})


def ceilings(*given):
    """Each of a number of clients, with its rates in a phase of creates and in all others."""
    return pd.DataFrame([{"clients": clients, **{f"{phase}_issued_per_s": others for phase in PATTERN_PHASES["bonnie"]},
                          "sequential_create_issued_per_s": creates} for clients, creates, others in given])


def test_the_ceiling_is_that_of_as_many_clients_or_the_next_more():
    found = ceilings((1, [10.0], [50.0]), (8, [30.0, 32.0], [60.0, 70.0]), (8, [40.0, 31.0], [60.0, 80.0]))
    assert [list(client_limits.ceilings_of(found, n)["clients"]) for n in (1, 4, 8, 9)] == [[1], [8, 8], [8, 8], []]
    assert not len(client_limits.ceilings_of(pd.DataFrame(), 1))
    of_eight = client_limits.ceilings_of(found, 4)
    assert client_limits.ceilings_in_phase(of_eight, "sequential_create") == [[30, 32], [40, 31]]
    assert client_limits.ceilings_in_phase(of_eight, "random_stat") == [[60, 70], [60, 80]]
    assert client_limits.ceilings_in_phase(of_eight, "random_reread") == [[60, 70], [60, 80]]
    assert client_limits.ceilings_in_phase(of_eight, "mixed") == [[30, 32], [40, 31]]     # the slowest
    assert client_limits.ceilings_in_phase(of_eight[:0], "mixed") == []


@pytest.mark.parametrize("metrics, first, second", [
    ({"sequential_create_issued_per_s": [6.0]}, 0, 0), ({"sequential_create_issued_per_s": [8.0]}, 1, 0),
    ({"random_create_issued_per_s": [8.0]}, 0, 0), ({"random_create_issued_per_s": [40.0]}, 0, 1),
    ({"random_create_per_s": 34.0}, 0, 0), ({"random_create_per_s": 36.0}, 0, 1)])
def test_each_phase_is_held_against_its_own_ceiling(metrics, first, second):
    found = limits(metrics, lambda from_s, to_s: 0.25 * (to_s - from_s))
    assert found["sequential_create_per_s_limited"] == first and found["random_create_per_s_limited"] == second
    assert found["create_per_s_limited"] == max(first, second) == found["create_random_over_sequential_limited"]
    assert found["client_limited"] == 0 and found["fuse_cpu_share"] == pytest.approx(0.25)


def limits(metrics, fuse_cpu):
    return client_limits.client_limits({"clients_cpu_s": 0.6} | metrics, PHASES, ceilings((1, [10.0], [50.0])),
                                       fuse_cpu, cores=1)


def test_a_phase_that_uses_up_the_core_limits_no_other_phase():
    """0.3 s of the clients' own in each phase: of 4 s and of 2 s."""
    found = limits({}, lambda from_s, to_s: 0.6 * (to_s - from_s))
    assert found["sequential_create_clients_share"] == pytest.approx(0.675)
    assert found["random_create_clients_share"] == pytest.approx(0.75)
    assert (found["sequential_create_per_s_limited"], found["random_create_per_s_limited"]) == (0, 1)
    assert found["client_limited"] == 0
    assert limits({}, lambda from_s, to_s: to_s - from_s)["client_limited"] == 1    # all phases
