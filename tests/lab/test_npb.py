"""The NAS kernels by OpenMPI, in one place and over two that are reached over ssh."""

import time

import pytest
from small_labs import describe, new_id

from labbook.errors import LabbookError, SystemFailure
from labbook.lab import Environment, Lab
from labbook.workloads.machines.machine import Machine
from labbook.workloads.machines.npb import KERNELS, build, facts, latency, most_ranks, npb

# Five processes or more share the test machine's cores, so that a wait for one another takes long.
SECONDS = 120


@pytest.fixture(scope="module")
def lab():
    with Lab.up(describe({"h1": {}, "h2": {}, "client": {}}), Environment("local"), new_id()) as lab:
        build(lab.host("client"))
        for place in behind(lab):
            place.send(lab.host("client").root / "benchmarks/npb", f"{place.folder}/npb")
        yield lab


def behind(lab) -> list[Machine]:
    return [Machine.of(lab.host(name), lab.host("client")) for name in ("h1", "h2")]


@pytest.fixture(scope="module")
def both(lab):
    return behind(lab)


@pytest.mark.parametrize("kernel, ranks", [(kernel, ranks) for kernel in KERNELS for ranks in (1, 2, 4, 8, 16)
                                           if ranks <= most_ranks(kernel, "S")])
def test_kernels_come_to_the_published_values_by_any_number_of_ranks(lab, kernel, ranks):
    load = npb([Machine.of(lab.host("h1"))], kernel=kernel, size="S", ranks=ranks,
               seconds_at_most=SECONDS)
    assert load.metrics["verified"] == 1 and load.metrics["mops"] > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_come_to_the_published_values_over_two_places(both, kernel):
    load = npb(both, kernel=kernel, size="S", ranks=4, seconds_at_most=SECONDS)
    assert load.metrics["verified"] == 1 and load.metrics["start_s"] > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_come_to_the_published_values_in_the_next_size(lab, kernel):
    load = npb([Machine.of(lab.host("h1"))], kernel=kernel, size="W", ranks=2, seconds_at_most=SECONDS)
    assert load.metrics["verified"] == 1


def test_a_host_may_run_together_with_those_that_it_reaches(lab):
    h1, h2 = lab.host("h1"), lab.host("h2")
    load = npb([Machine.of(h1), Machine.of(h2, h1)], kernel="cg", size="S", ranks=2,
               seconds_at_most=SECONDS)
    assert load.metrics["verified"] == 1


def test_messages_go_to_and_fro(lab, both):
    two = latency(both, rounds=200).metrics
    one = latency([Machine.of(lab.host("h1"))], rounds=200).metrics
    for found in (two, one):
        assert 0 < found["least_latency_us"] <= found["latency_us"] <= found["p95_latency_us"]
        assert found["bandwidth_mb_per_s"] > 0


def test_the_compiler_is_known(lab):
    assert "gcc" in facts(lab.host("client"))["npb_compiler"]
    assert facts(lab.host("h1")) == facts(lab.host("client"))


def running(host) -> str:
    return host.run("pgrep -l -x 'ep|mpirun|orted|timeout' || true").stdout


def test_what_takes_too_long_is_ended_in_all_places(lab, both):
    with pytest.raises(SystemFailure, match="ep C of 2 to end: not within 3 s"):
        npb(both, kernel="ep", size="C", ranks=2, seconds_at_most=3)
    hosts, until = [lab.host(name) for name in ("h1", "h2", "client")], time.monotonic() + 20
    while any(running(host) for host in hosts) and time.monotonic() < until:
        time.sleep(0.1)
    assert [running(host) for host in hosts] == [""] * 3


def test_a_rank_that_dies_is_a_failure_with_its_words(lab, both):
    h2 = lab.host("h2")
    h2.run("mv benchmarks/npb/ft benchmarks/npb/ft.away")
    try:
        with pytest.raises(SystemFailure, match="ft S of 2 failed") as failure:
            npb(both, kernel="ft", size="S", ranks=2, seconds_at_most=SECONDS)
        assert "npb/ft" in failure.value.log
    finally:
        h2.run("mv benchmarks/npb/ft.away benchmarks/npb/ft")


def test_a_place_that_is_not_there_is_an_error(lab, both):
    away = Machine("away", both[0].via, "198.18.255.254", key=both[0].key, folder=both[0].folder)
    with pytest.raises(LabbookError, match="away|places"):
        npb([away, both[0]], kernel="ep", size="S", ranks=2, seconds_at_most=SECONDS)
