"""Rally and Keystone's clients on a small cloud: without faults, with a killed node, with a cut link, and without
Keystone. Rally's test is the first, since it counts the users."""

import time

import pytest
from small_clouds import SMALL, small_cloud

from labbook.errors import SystemFailure
from labbook.workloads.clients.outage import outage, timeline
from labbook.workloads.crew.crew import Crew
from labbook.workloads.histories.calls import metrics
from labbook.workloads.keystone.history import last_lists
from labbook.workloads.keystone.on_host.calls import STEPS
from labbook.workloads.keystone.rally import rally
from labbook.workloads.keystone.users import SCENARIOS, begin_users, keystone_users


@pytest.fixture(scope="module")
def lab_and_cloud():
    with small_cloud() as found:
        yield found


def names_on_each(cloud) -> dict:
    rows = cloud.galera.query_each("SELECT name FROM keystone.local_user")
    return {node: {name for name, in found} for node, found in rows.items()}


def test_rally_makes_the_calls_and_takes_its_users_away(lab_and_cloud):
    lab, cloud = lab_and_cloud
    scenario = "create_and_list_users"      # which has the other one's steps and one more
    load = rally(Crew.of(lab), cloud, scenario=scenario, concurrency=2, times=4,
                 seconds_at_most=300)
    calls = load.rows[load.rows.step == ""]
    assert load.rows.ok.all(), load.rows.error.unique()
    assert len(calls) == 4 and load.metrics["rate_per_s"] > 0
    steps = load.rows[load.rows.step != ""]
    assert steps.groupby("step", observed=True).size().to_dict() == dict.fromkeys(STEPS[scenario], 4)
    token = cloud.keystone.admin_token()
    users = cloud.keystone.request("GET", "/users", token=token).json["users"]
    assert len(users) == SMALL["users"] + 1
    client = lab.host("client")
    left = client.run(f"ls; grep -rl {cloud.credentials['password']} . || true").stdout.split()
    assert "rally" not in left and not [name for name in left if name.startswith("./")]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_users_are_created_and_listed(lab_and_cloud, scenario):
    lab, cloud = lab_and_cloud
    load = keystone_users(Crew.of(lab), cloud, scenario=scenario, concurrency=3, times=9,
                          seconds_at_most=60)
    calls = load.rows[load.rows.step == ""]
    assert len(load.rows) == 9 * (1 + len(STEPS[scenario]))
    assert load.rows.ok.all(), load.rows.error.unique()
    assert all(set(calls.user) <= names for names in names_on_each(cloud).values())
    assert load.metrics["server_cpu_ms_per_call"] >= 0


def after_a_fault(lab, cloud, fault) -> tuple:
    """(load, when the fault was) of calls before, during and after `fault()`."""
    cloud.reset()  # to a history, users of earlier tests come from nowhere
    stream = begin_users(Crew.of(lab), [cloud], scenario="create_and_list_users", concurrency=3,
                         seconds_at_most=120, call_seconds=20)
    time.sleep(3)  # for some calls, even if each takes a second
    at = time.time() - stream.started
    fault()
    cloud.galera.synced()
    time.sleep(3)  # for some calls, even if each takes a second
    return stream.end()[0], at


def check_nothing_acknowledged_is_lost(cloud, load, at):
    rows, end = load.rows, time.time() - load.started
    history = [*load.history, *last_lists(names_on_each(cloud), end, end + 1)]
    anomalies = metrics(history, load.slack_s)
    assert (anomalies["lost_writes"], anomalies["phantom_values"]) == (0, 0), anomalies
    assert anomalies["checked_calls"] >= 2 * len(set(rows.user))
    with_loss = [call._replace(value=call.value[1:]) if call.last else call for call in history]
    assert metrics(with_loss, load.slack_s)["lost_writes"] >= 1      # as if each node had lost one
    made = set(rows.user[(rows.step == "") & (rows.user != "")])
    assert len(made) > 5
    assert all(made <= names for names in names_on_each(cloud).values())
    found, bins = outage(rows, at), timeline(rows, 0.5)
    assert found["recovered"] == 1 and found["first_success_s"] > 0 and found["outage_s"] > 0
    assert sum(bins["ok_per_bin"]) == (rows.ok & (rows.step == "")).sum()


def test_a_killed_node_loses_no_acknowledged_user(lab_and_cloud):
    lab, cloud = lab_and_cloud
    node = cloud.galera.node(cloud.galera.hosts[-1].name)

    def kill_and_come_back():
        node.process.kill()
        node.rejoin(by="IST")

    check_nothing_acknowledged_is_lost(cloud, *after_a_fault(lab, cloud, kill_and_come_back))


def test_a_cut_link_loses_no_acknowledged_user(lab_and_cloud):
    lab, cloud = lab_and_cloud
    link = lab.link("a", "b")

    def cut_and_heal():
        link.cut()
        time.sleep(3)
        link.heal()

    check_nothing_acknowledged_is_lost(cloud, *after_a_fault(lab, cloud, cut_and_heal))


def test_without_a_keystone_there_are_no_calls_to_tell_of(lab_and_cloud):
    lab, cloud = lab_and_cloud
    cloud.keystone.stop()
    with pytest.raises(SystemFailure, match="client: Rally made no"):
        rally(Crew.of(lab), cloud, scenario="create_user", concurrency=2, times=4,
              seconds_at_most=300)
