from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import InputError, SystemFailure
from labbook.systems.cassandra import stages
from labbook.systems.cassandra.node import Cassandra

TEXT = ("12 ReadStage:1:9\n"                            # the end of a line that began before
        "10000 ReadStage:2:60 MutationStage:1:0\n"
        "10050 ReadStage:2:66 org.Name:With:0:4\n"
        "10100\n"
        "20000 ReadStage:2:1\n"                         # after the load
        "# java.lang.InterruptedException\n"
        "10100 ReadSt")


def test_samples_are_those_of_the_load_and_a_sample_without_tasks_counts():
    frame, samples = stages.parse(TEXT, 9.9, 11.0)
    assert samples == 3 and list(frame["waiting"]) == [60, 0, 66, 4]
    assert frame["at_s"].round(3).tolist() == [0.1, 0.1, 0.15, 0.15] and frame["stage"].iloc[-1] == "org.Name:With"
    assert stages.queue(frame, samples, "ReadStage") == {
        "stage_active": pytest.approx(4 / 3), "stage_waiting": 42.0, "stage_most_waiting": 66, "stage_samples": 3}
    assert stages.queue(frame, samples, "GossipStage") == {
        "stage_active": 0.0, "stage_waiting": 0.0, "stage_most_waiting": 0, "stage_samples": 3}


def sampled(**outputs):
    """A node on which the programs have these outputs."""
    return SimpleNamespace(home=PurePosixPath("/srv/cassandra"), host=SimpleNamespace(name="server"),
                           process=SimpleNamespace(log_tail=lambda: "its log"),
                           run=lambda *words: SimpleNamespace(stdout=outputs[words[0]]))


@pytest.mark.parametrize("text, reason", [
    ("", "none between 7.000 and 8.000 s"), ("9000 ReadStage:1:2\n", "none between"),
    ("7100\n# java.lang.OutOfMemoryError: x\n", "it ended with java.lang.OutOfMemoryError: x")])
def test_a_sampler_that_has_ended_is_no_empty_queue(text, reason):
    with pytest.raises(SystemFailure, match=f"server: Cassandra's stages were not sampled: {reason}") as failure:
        stages.since(sampled(tail=text), (0, 0.0), 7.0, 8.0)
    assert failure.value.log == "its log"


def test_samples_are_found_by_our_clock_on_a_host_whose_clock_is_ahead():
    node = sampled(stat="5\n", tail="107600 ReadStage:1:2\n")
    node.host.is_remote = False
    assert stages.begin(node) == (5, 0.0), "a host that the lab made has our clock"
    frame, samples = stages.since(node, (5, 100.0), 7.0, 8.0)
    assert samples == 1 and frame["at_s"].round(3).tolist() == [0.6]


HOST = SimpleNamespace(name="server", address="198.18.0.2", root=PurePosixPath("/srv"),
                       limits={"memory": 3 << 30})


@pytest.mark.parametrize("version", ["0.7.0", "1.0.7", "5.0.8"])
def test_a_node_has_as_many_threads_in_its_stages_as_asked_and_is_sampled_within(version):
    node = Cassandra(HOST, version=version, stage_threads=2, stage_samples_ms=50)
    made = node.configuration()
    assert made["concurrent_reads"] == made["concurrent_writes"] == 2
    main = node.version["main"]
    assert node.command().endswith(f"StageSampler {node.home}/stages.log 50 {main}")
    plain = Cassandra(HOST, version=version)
    assert plain.command().endswith(f" {main}") and "Sampler" not in plain.command()
    assert "concurrent_reads" not in plain.configuration()


def test_a_node_that_needs_two_main_classes_of_ours_is_refused():
    with pytest.raises(InputError, match="nodetool"):
        Cassandra.checked({"version": "0.7.0", "nodetool": True, "stage_samples_ms": 50})
    Cassandra.checked({"version": "5.0.8", "nodetool": True, "stage_samples_ms": 50})
