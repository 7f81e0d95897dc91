"""What root does for a lab, in words."""

import pytest

from labbook import paths
from labbook.lab.description import LabDescription
from labbook.pipeline.running import root_actions

LAB = {"sites": ["a", "b", "c"], "hosts": {
    "db[1-2]": {"site": "a", "role": "db", "limits": {"cores": 1, "memory": "1G", "disk": {"size": "1G", "trace": True}}},
    "slow": {"site": "a", "role": "db", "limits": {"disk": {"size": "1G", "model": "hdd_2010"}}},
    "client": {"site": "b", "role": "client", "limits": {"cores": 1, "fuse": True}},
    "idle": {"site": "c", "role": "client"}},
    "links": [{"between": ["a", "b"], "rtt_ms": 100, "loss": 0}, {"between": ["b", "c"], "rtt_ms": 100},
              {"between": ["a", "c"]}]}


@pytest.fixture
def lab():
    return LabDescription.parse(LAB)


def test_each_action_names_its_host_or_link(lab):
    actions = "\n".join(root_actions.every(lab))
    assert "5 hosts in their own namespaces (db1, db2, slow, client, idle)" in actions
    assert "a link a - b shaped to rtt_ms 100" in actions and "loss" not in actions
    assert "control group of db2: cores, memory" in actions and "freeze" in actions
    assert "a file system on a loop device for db1\n" in actions
    assert "a file system on a loop device for slow, on a file that a daemon serves as slowly as hdd_2010" in actions
    assert "the kernel's trace of requests to the disk of db2" in actions


def test_the_summary_has_a_line_for_each_kind(lab):
    assert root_actions.summary(lab) == [
        "5 hosts in their own namespaces, a bridge a site", "control groups that freeze hosts which are not measured",
        "2 links shaped to rtt_ms 100", "a link a - c",
        "control group of 2 hosts: cores, memory; client: cores",
        "a file system on a loop device for 2 hosts; slow, on a file that a daemon serves as slowly as hdd_2010",
        "the kernel's trace of requests to the disk of 2 hosts", "FUSE file systems, visible to client only"]


@pytest.mark.parametrize("study", ["cassandra_elasticity", "ceph_mds", "cloud_platforms", "cms_scalability", "wan_keystone"])
def test_the_summary_of_our_labs_is_short(study):
    lab = LabDescription.load(paths.papers(study) / "lab.yml")
    assert len(root_actions.summary(lab)) <= 8 < len(root_actions.every(lab))
