"""Rally in a lab, against a small cloud of Keystone."""

import pytest
from small_clouds import SMALL, small_cloud

from labbook.errors import SystemFailure
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.on_host.calls import STEPS
from labbook.workloads.keystone.rally import rally


@pytest.fixture(scope="module")
def both():
    with small_cloud() as made:
        yield made


def test_rally_makes_the_calls_and_takes_its_users_away(both):
    lab, cloud = both
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


def test_without_a_keystone_there_are_no_calls_to_tell_of(both):
    lab, cloud = both
    cloud.keystone.stop()
    with pytest.raises(SystemFailure, match="client: Rally made no"):
        rally(Crew.of(lab), cloud, scenario="create_user", concurrency=2, times=4,
              seconds_at_most=300)
