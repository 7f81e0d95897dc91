"""A small KeystoneCloud on remote hosts, by a user who is not root: two database hosts at two sites and
one host for the rest. It works, survives a killed node, and leaves nothing."""

import json
import time

import pytest
from foreign import foreign_hosts
from real_labs import as_before
from small_clouds import cloud_hosts, cloud_lab

from labbook.errors import LabError
from labbook.lab import Environment, Link
from labbook.lab.link.pings import Pings
from labbook.systems.galera.node import TRANSFERS
from labbook.systems.keystone.stack import KeystoneCloud
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.users import begin_users

SMALL = {"users": 8, "projects": 2, "revocations": 4, "processes": 2, "segments": 2,
         "weight": 2}  # so that the first node continues without the other
ROLES = {"h1": ["db"], "h2": ["db"], "h3": ["lb", "keystone", "client"]}
SITES = {"h1": {"site": "a"}, "h2": {"site": "b"}, "h3": {"site": "a"}}
CALL_SECONDS = 15
NAMES = "SELECT name FROM keystone.local_user"


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2", "h3"]) as made:
        yield made


def test_a_cloud_on_a_users_own_hosts_survives_a_killed_node_and_leaves_nothing(place, tmp_path):
    environment = Environment.load(place.environment(tmp_path / "rack.yml", roles=ROLES, hosts=SITES,
                                                     allow=["software"]))
    with as_before(place):
        with cloud_lab(a=1, environment=environment) as lab:
            cloud = KeystoneCloud(cloud_hosts(lab), **SMALL).up()
            assert cloud.galera.segments == [0, 1]
            check_secrets_are_nowhere(place, cloud)
            check_the_wan_is_taken_as_it_is(lab)
            made = users_made_while(lab, cloud, kill_and_rejoin)
            cloud.galera.synced()
            assert all(made <= {name for name, in rows}
                       for rows in cloud.galera.query_each(NAMES).values())
            cloud.destroy()
            assert all(set(host.run("ls").stdout.split()) <= {"processes", "tmp"}
                       for host in cloud.hosts)


def users_made_while(lab, cloud, fault) -> set:
    stream = begin_users(Crew.of(lab), [cloud], scenario="create_and_list_users", concurrency=2,
                         seconds_at_most=600, call_seconds=CALL_SECONDS)
    fault(cloud)
    proxy = cloud.haproxy   # which sees with a delay that a donor is Synced again
    proxy.host.wait_for(lambda: set(proxy.states().values()) == {"UP"}, "its servers to be UP", 60)
    back_s = time.time() - stream.started
    time.sleep(CALL_SECONDS + 1)    # a call under way may take so long, and the next one counts
    rows = stream.end()[0].rows
    assert rows.ok[(rows.step == "") & (rows.started_s > back_s)].any(), rows.error.unique()
    return {user for user in rows.user if user}


def kill_and_rejoin(cloud):
    left, lost = cloud.galera.nodes
    for transfer in TRANSFERS:
        lost.process.kill()
        cloud.galera.synced([left.host.name])
        assert lost.rejoin(by=transfer)["by"] == transfer


def check_the_wan_is_taken_as_it_is(lab):
    """Its own delay is measured; shaping is not allowed here."""
    link = Link(lab, "a", "b")
    link.shape()
    assert 0 < link.check()["measured_rtt_ms"] < 5
    link._ping = lambda *_, **__: [("h1 to h2", Pings(5, 5, 199, 200, 201))]
    assert link.check()["measured_rtt_ms"] == 199
    link._ping = lambda *_, **__: [("h1 to h2", Pings(5, 0))]
    with pytest.raises(LabError, match="none of 5 pings came back"):
        link.check()
    with pytest.raises(LabError, match="shape is not allowed"):
        link.shape(rtt_ms=10)


def check_secrets_are_nowhere(place, cloud):
    """They are in no facts, command lines or logs; only their user can read files with them."""
    secrets = cloud.keystone.secrets
    output = json.dumps(cloud.facts()) + repr(vars(cloud.keystone))
    for host in cloud.hosts:
        output += host.run("ps axo args; cat processes/*/log").stdout
    for secret in (secrets.password, secrets.fernet, secrets.credential, cloud.galera.password):
        assert secret not in output
        found = {name: place.inside(name, f"grep -rlF -e {secret} /home/op /tmp /var | xargs -r stat -c %a").split()
                 for name in place.names}
        assert {mode for modes in found.values() for mode in modes} == {"600"}, found
