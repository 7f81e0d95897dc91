"""A small KeystoneCloud: its seed, its reset, a cut link, and parts that do not come up."""

import json

import pytest
from listeners import check_listeners
from small_clouds import SMALL, cloud_hosts, small_cloud

from labbook.errors import SystemFailure
from labbook.systems.galera.node import GaleraNode
from labbook.systems.haproxy import HAProxy
from labbook.systems.keystone import state
from labbook.systems.keystone.server import Keystone
from labbook.systems.keystone.stack import KeystoneCloud

USERS = "SELECT COUNT(*) FROM keystone.local_user"  # including the administrator


@pytest.fixture(scope="module")
def both():
    with small_cloud(segments=2) as made:
        yield made


@pytest.fixture
def cloud(both):
    return both[1]


def make_user(cloud, name):
    body = {"user": {"name": name, "domain_id": "default", "password": "x"}}
    return state.ask(cloud.keystone, "POST", "/users", body, cloud.keystone.admin_token())["user"]


def test_all_nodes_start_from_the_seed_and_take_part(cloud):
    assert set(cloud.galera.query_each(USERS).values()) == {((SMALL["users"] + 1,),)}
    assert all(found["size"] == 3 and found["state"] == "Synced"
               for found in cloud.galera.status().values())
    near = [host.address for host in cloud.galera.hosts if host.site == "a"]
    cloud.haproxy.host.wait_for(lambda: cloud.haproxy.states() == dict.fromkeys(near, "UP"), "both to be UP", 30)
    token = cloud.keystone.admin_token()
    users = cloud.keystone.request("GET", "/users", token=token).json["users"]
    assert {user["name"] for user in users} == {"admin", *map(state.user_name, range(1, 21))}
    projects = cloud.keystone.request("GET", "/projects", token=token).json["projects"]
    assert {project["name"] for project in projects} == {"admin", "project001", "project002",
                                                         "project003"}
    assert cloud.keystone.request("GET", "/users", token="wrong").status == 401
    check_listeners(cloud.hosts, "keystone_cloud", "keystone", "haproxy")


def test_the_catalogue_names_keystones_address(cloud):
    token = cloud.keystone.admin_token()
    seen = cloud.keystone.request("GET", "/auth/catalog", token=token).json["catalog"]
    assert [e["url"] for service in seen for e in service["endpoints"]] == [cloud.url]


def test_a_reset_removes_new_users_and_restores_the_revocations(cloud):
    for number in range(3):
        make_user(cloud, f"new{number}")
    assert cloud.galera.query(USERS)[0][0] == SMALL["users"] + 4
    cloud.reset()
    assert cloud.galera.query(USERS)[0][0] == SMALL["users"] + 1
    of_tokens = cloud.galera.query(f"SELECT audit_id, audit_chain_id FROM {state.TABLE}")
    assert len(of_tokens) == SMALL["revocations"] and all(map(any, of_tokens))
    cloud.reset()  # a second time changes nothing
    assert state.entries_of(cloud.galera) == SMALL["revocations"]


def test_a_list_of_users_is_complete(cloud):
    """By default it ends after a thousand, and a reset would leave users behind."""
    many = 1100
    try:
        cloud.galera.query("INSERT INTO keystone.user (id, extra, enabled, domain_id) SELECT "
                           f"CONCAT('many', seq), '{{}}', 1, 'default' FROM keystone.seq_1_to_{many}")
        cloud.galera.query("INSERT INTO keystone.local_user (user_id, domain_id, name) SELECT "
                           "id, domain_id, id FROM keystone.user WHERE id LIKE 'many%'")
        token = cloud.keystone.admin_token()
        users = state.ask(cloud.keystone, "GET", "/users", token=token)["users"]
        assert len(users) == many + SMALL["users"] + 1
    finally:
        cloud.galera.query("DELETE FROM keystone.user WHERE id LIKE 'many%'")
    assert cloud.galera.query(USERS)[0][0] == SMALL["users"] + 1


def test_the_password_is_in_no_record_and_no_process_list(cloud):
    password = cloud.credentials["password"]
    assert password not in json.dumps(cloud.facts()) + repr(vars(cloud.keystone))
    host = cloud.keystone.host
    assert password not in host.run("ps axo args; cat processes/*/log").stdout
    found = host.run(f"grep -rl -e {password} . | xargs stat -c %a").stdout.split()
    assert found == ["600"]


def test_a_node_without_quorum_gets_no_connections(both):
    lab, cloud = both
    lost = cloud.galera.nodes[2]
    proxy = HAProxy(lab.host("client"), servers=cloud.galera.addresses, check="galera",
                    check_ms=1000).up()
    link = lab.link("a", "b")
    try:
        cloud.host.wait_for(lambda: proxy.states()[lost.address] == "UP", "the node to be UP", 30)
        # the link between them is cut too: a proxy on the node's host shows the node's own answer
        beside = HAProxy(lost.host, servers=[lost.address], check="galera", check_ms=1000)
        beside.port = 3316
        beside.provide()
        beside.deploy()
        beside.start()
        link.cut()
        lost.host.wait_for(lambda: not lost.cluster_state()["primary"], "the node to be alone", 60)
        lost.host.wait_for(lambda: beside.states()[lost.address] == "DOWN", "the node to be DOWN", 30)
        assert "unable" in beside.process.log_tail()
        cloud.host.wait_for(lambda: proxy.states() == {
            address: "DOWN" if address == lost.address else "UP"
            for address in cloud.galera.addresses}, "the other nodes to stay UP", 60)
        make_user(cloud, "while-cut")
        link.heal()
        cloud.galera.synced()
        beside.host.wait_for(lambda: beside.states()[lost.address] == "UP", "the node to be UP", 60)
        assert set(cloud.galera.query_each(USERS).values()) == {((SMALL["users"] + 2,),)}
        beside.destroy()
    finally:
        link.heal()
        proxy.destroy()


def test_a_keystone_without_an_answering_database_says_so(both):
    lab, cloud = both
    nowhere = Keystone(lab.host("client"), database_address=cloud.address)
    with pytest.raises(SystemFailure, match="client: Keystone's database at .*:3306 does not answer"):
        nowhere.up()
    nowhere.destroy()


def test_a_cloud_with_other_settings_takes_its_place(both):
    lab, before = both
    one = KeystoneCloud(cloud_hosts(lab), **SMALL, cache=False).up()
    assert one.galera.segments == [0, 0, 0] and one.facts()["keystone"]["cache"] is False
    assert one.galera.query(USERS)[0][0] == SMALL["users"] + 1  # nothing of the earlier cloud is left
    one.reset()
    one.destroy()
    assert {host.run("ls").stdout for host in one.hosts} == {"processes\n"}


@pytest.mark.parametrize("part, message", [
    (Keystone, "keystone: .*ended with exit code"), (GaleraNode, "db[123]: .*ended with exit code")])
def test_if_a_part_does_not_come_up_none_is_left_running(both, monkeypatch, part, message):
    lab, _ = both
    cloud = KeystoneCloud(cloud_hosts(lab), **SMALL)
    monkeypatch.setattr(part, "command", lambda self: "ls /no-such-file")
    with pytest.raises(SystemFailure, match=message) as error:
        cloud.up()
    assert "/no-such-file" in error.value.log
    processes = [*cloud.processes, cloud.haproxy.process, cloud.process]
    assert not any(process and process.alive() for process in processes)
    cloud.destroy()
    assert {host.run("ls").stdout for host in cloud.hosts} == {"processes\n"}
