"""Configuration, parsers and decisions of a Galera cluster; tests/lab has its servers."""

from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import InputError, SystemFailure
from labbook.systems import find, over_several, sql
from labbook.systems.galera import cluster as galera_cluster
from labbook.systems.galera import config
from labbook.systems.galera import node as galera_node
from labbook.systems.galera.cluster import Galera
from labbook.systems.galera.node import GaleraNode, Left
from labbook.systems.sql import configuration

PROVIDER = config.PROVIDERS[0]
STATUS = {"wsrep_cluster_size": "6", "wsrep_cluster_status": "Primary",
          "wsrep_local_state_comment": "Synced", "wsrep_last_committed": "4711",
          "wsrep_flow_control_paused_ns": "1500000000", "wsrep_flow_control_sent": "2",
          "wsrep_local_cert_failures": "3", "wsrep_local_bf_aborts": "4",
          "wsrep_replicated": "50", "wsrep_replicated_bytes": "6000", "Questions": "700"}
HISTORY = "4e7ce03a-e5bb-11f1-a6b6-a7d15a0eff52"


def hosts(count):
    return [SimpleNamespace(name=f"db{i}", address=f"198.18.0.{i}", limits={},
                            root=PurePosixPath("/srv")) for i in range(1, count + 1)]


def options(node) -> dict:
    return config.options(node.settings, node.host.name, node.address, PROVIDER,
                          "labbook:a-password")


def provider_options(node) -> dict:
    given = options(node)["wsrep_provider_options"]
    return dict(pair.split("=", 1) for pair in given.strip('"').split(";"))


def test_the_nodes_of_a_cluster():
    cluster = Galera(hosts(3), segments=[0, 0, 255], weights=[2, 1, 0], send_window=64)
    addresses = ["198.18.0.1", "198.18.0.2", "198.18.0.3"]
    assert cluster.addresses == addresses and cluster.address == addresses[0]
    assert (cluster.port, cluster.protocol, cluster.NAME) == (3306, "mysql", "galera")
    assert [node.settings.segment for node in cluster.nodes] == [0, 0, 255]
    assert [node.settings.weight for node in cluster.nodes] == [2, 1, 0]
    assert {node.settings.send_window for node in cluster.nodes} == {64}
    assert all(node.settings.peers == addresses for node in cluster.nodes)
    assert cluster.node("db2") is cluster.nodes[1]
    with pytest.raises(InputError, match="no node on a host 'db9' .*db1, db2, db3"):
        cluster.node("db9")
    plain = Galera(hosts(2))
    assert plain.segments == [0, 0] and plain.weights == [1, 1]
    assert find("galera") is Galera and over_several(Galera)
    assert Galera.checked({"segments": [0, 1]})["send_window"] == 4


def test_a_node_uses_only_the_data_network():
    node = Galera(hosts(2), segments=[0, 1], send_window=512, user_send_window=256,
                  keepalive_s=2.5).nodes[1]
    given = options(node)
    assert given["wsrep_cluster_address"] == "gcomm://198.18.0.1,198.18.0.2"
    assert given["wsrep_node_address"] == "198.18.0.2" and given["wsrep_node_name"] == "db2"
    assert given["wsrep_provider"] == PROVIDER and given["binlog_format"] == "ROW"
    assert provider_options(node) == {
        "gmcast.listen_addr": "tcp://198.18.0.2:4567", "gmcast.segment": "1", "pc.weight": "1",
        "evs.send_window": "512", "evs.user_send_window": "256", "evs.keepalive_period": "PT2.5S",
        "evs.suspect_timeout": "PT10S", "gcache.size": "64M"}


def test_a_node_without_peers_is_a_cluster():
    node = GaleraNode(hosts(1)[0])
    assert options(node)["wsrep_cluster_address"] == "gcomm://198.18.0.1"
    text = configuration(node.settings, node.address, node.home, buffer_pool_mb=64, as_root=False,
                         **options(node))
    assert "innodb_flush_log_at_trx_commit=0\n" in text and "datadir=/srv/galera/data\n" in text
    assert "init-file" not in text  # the cluster would replicate it at each start
    assert "wsrep_sst_auth=labbook:a-password\n" in text
    assert text.count("innodb_buffer_pool_size=64M") == 1


def test_of_a_nodes_accounts_only_the_proxys_has_no_password_and_no_rights(tmp_path):
    node = GaleraNode(here_host(tmp_path, "db1"))
    node.provide()
    node.put_accounts(config.CHECK_ACCOUNT)
    *_, ours, check = Path(node.home, "init.sql").read_text().splitlines()
    assert ours == f"GRANT ALL ON *.* TO 'labbook'@'%' IDENTIFIED BY '{node.password}';"
    assert check == "GRANT USAGE ON *.* TO 'check'@'%' IDENTIFIED BY '';"


def test_a_state_transfer_listens_on_the_data_network_only():
    assert '\nsockopt=",bind=198.18.0.1"\n' in config.transfers("198.18.0.1")


@pytest.mark.parametrize("count, settings, message", [
    (0, {}, "hosts: no hosts"),
    (3, {"segments": [0, 1]}, "segments: 2 numbers do not fit 3 nodes .*one for each node"),
    (2, {"segments": [0, 256]}, "segments.1: 256"),
    (2, {"segments": [0, -1]}, "segments.1: -1"),
    (2, {"segments": [0, "1"]}, "segments.1: '1'"),
    (2, {"segments": [True, False]}, "segments.1: False"),
    (2, {"weights": [1]}, "weights: 1 numbers do not fit 2 nodes"),
    (2, {"weights": [1, 1000]}, "weights"),
    (2, {"weights": [0, 0]}, "weights: all are 0"),
    (2, {"send_window": 0}, "send_window"),
    (2, {"send_window": 2, "user_send_window": 3}, "user_send_window: 3 is more .*1 to 2"),
    (2, {"segment": 1}, "unknown key, did you mean 'segments'"),
    (2, {"peers": ["198.18.0.9"]}, "peers: unknown key"),
    (2, {"window": 4}, "unknown key, did you mean 'send_window'"),
])
def test_wrong_clusters(count, settings, message):
    with pytest.raises(InputError, match=message):
        Galera(hosts(count), **settings)


@pytest.mark.parametrize("settings, message", [
    ({"segments": "01"}, "segments: '01' is not of type array"),
    ({"segments": [0, 300]}, "segments.1: 300"),
    ({"segment": 1}, "unknown key, did you mean 'segments'"),
    ({"send_window": 1}, "user_send_window"),
])
def test_wrong_settings_are_refused_without_hosts(settings, message):
    with pytest.raises(InputError, match=message):
        Galera.checked(settings)


def test_state_and_counters_of_a_node():
    assert config.parse_cluster_state(STATUS) == {"size": 6, "primary": True, "state": "Synced",
                                       "committed": 4711}
    assert not config.parse_cluster_state({**STATUS, "wsrep_cluster_status": "non-Primary"})["primary"]
    assert config.parse_counters(STATUS) == {
        "flow_control_paused_s": 1.5, "flow_control_sent": 2, "cert_failures": 3, "bf_aborts": 4,
        "replicated": 50, "replicated_bytes": 6000, "questions": 700}


@pytest.mark.parametrize("log, by", [
    ("", None),
    ("WSREP_SST: [INFO] mariabackup SST started on joiner\n", None),
    ("WSREP_SST: [INFO] mariabackup IST completed on joiner (20261121)\n", "IST"),
    ("WSREP_SST: [INFO] mariabackup SST completed on joiner\nWSREP: IST received: x:1\n", "SST"),
    ("WSREP_SST: [INFO] mariabackup SST completed on donor\n", None),
])
def test_transfer_that_a_node_used(log, by):
    assert config.parse_transfer(log) == by


@pytest.mark.parametrize("output, position", [
    (f"[Note] WSREP: Recovered position: {HISTORY}:12\n", f"{HISTORY}:12"),
    (f"WSREP: Recovered position: {config.NOWHERE}:-1", None),
    ("mariadbd: unknown option", None),
])
def test_position_of_a_killed_node(output, position):
    assert config.parse_recovered_position(output) == position


@pytest.fixture
def mariadbd(tmp_path, monkeypatch):
    """Writes a program that stands for the server; it has this text as its body."""
    program = tmp_path / "mariadbd"
    monkeypatch.setattr(galera_node, "MARIADBD", str(program))
    monkeypatch.setattr(galera_node, "BOUNDED", "timeout -k 1 3")

    def write(body):
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    return write


def test_the_position_of_a_killed_node_is_asked_from_its_server(tmp_path, mariadbd):
    node = GaleraNode(here_host(tmp_path, "db1"))
    mariadbd(f"echo WSREP: Recovered position: {HISTORY}:12 >&2")
    assert node.recovered() == f"{HISTORY}:12"
    mariadbd("echo InnoDB: corrupt; exit 1")
    with pytest.raises(SystemFailure, match="galera on db1 .*--wsrep-recover ended with exit code 1") as failure:
        node.recovered()
    assert "InnoDB: corrupt" in failure.value.log


@pytest.mark.parametrize("by", ["IST", "SST"])
def test_a_node_that_runs_does_not_rejoin_and_loses_no_file(tmp_path, by, monkeypatch):
    node = GaleraNode(here_host(tmp_path, "db1"))
    state = Path(node.data / "grastate.dat")
    state.parent.mkdir(parents=True)
    state.touch()
    node._process = SimpleNamespace(alive=lambda: True)
    with pytest.raises(InputError, match="rejoin: galera on db1 runs"):
        node.rejoin(by)
    assert state.exists()


def test_a_server_that_does_not_end_while_it_recovers_is_ended(tmp_path, mariadbd):
    """It stayed in the data directory, where the next start met it."""
    node, pid = GaleraNode(here_host(tmp_path, "db1")), tmp_path / "pid"
    mariadbd(f"echo $$ > {pid}; echo still recovering; exec sleep 600")
    with pytest.raises(SystemFailure, match="exit code 124") as failure:
        node.recovered()
    assert "still recovering" in failure.value.log and not Path("/proc", pid.read_text().strip()).exists()


def test_a_server_in_the_foreground_is_bounded_on_its_host():
    for command in (sql.fill_command("/srv"), sql.execute_command("/srv", "", "x")):
        assert f"timeout -k {sql.KILL_SECONDS} {sql.BOUND_SECONDS} {sql.MARIADBD} " in command
    assert sql.RUN_SECONDS > sql.BOUND_SECONDS + sql.KILL_SECONDS


@pytest.mark.parametrize("log, left", [
    ("", False),
    ("WSREP: Shifting CLOSED -> OPEN (TO: 0)\n", False),
    ("WSREP: Shifting JOINER -> OPEN (TO: 12)\n3:39:41 0 [Note] WSREP: Shifting OPEN -> CLOSED (TO: 13)\n", True),
    ("WSREP: Shifting DONOR/DESYNCED -> CLOSED (TO: 5)\nWSREP: Shifting CLOSED -> OPEN (TO: 5)\n", False),
])
def test_whether_a_node_has_left(log, left):
    assert config.has_left(log) is left


@pytest.mark.parametrize("leaves, how, starts", [(0, (), 0), (1, ("--wsrep-sst-donor=db1",), 1), (2, (), 2), (3, (), None),
                                                 (1, (galera_cluster.NEW_CLUSTER,), None)])
def test_a_node_that_leaves_while_it_joins_is_restarted_except_the_first(monkeypatch, leaves, how, starts):
    cluster, begun = Galera(hosts(2)), []
    node = cluster.nodes[1]
    node._how = how
    answers = iter([Left("db2: it left its cluster")] * leaves + [None] * 9)

    def await_answer(seconds):
        if error := next(answers):
            raise error

    monkeypatch.setattr(node, "await_answer", await_answer)
    monkeypatch.setattr(node, "begin", lambda *how: begun.append(how))
    if starts is None:
        with pytest.raises(Left):
            cluster.await_joined(node)
    else:
        cluster.await_joined(node)
        assert begun == [how] * starts, "from the same donor"


def test_the_last_view_lists_nodes_and_segments():
    assert config.last_view(["x", "y"], [0, 1], "y").splitlines() == [
        "my_uuid: y", "#vwbeg", "view_id: 3 x 1", "bootstrap: 0", "member: x 0", "member: y 1",
        "#vwend"]


def test_only_a_stopped_nodes_data_is_copied(tmp_path):
    with pytest.raises(InputError, match="no data directory of a stopped Galera node"):
        GaleraNode(hosts(1)[0])._copy(Path(tmp_path))


def test_a_cluster_that_is_not_synced_reports_its_nodes_states(monkeypatch):
    cluster = Galera(hosts(2))
    states = {"db1": config.parse_cluster_state(STATUS), "db2": None}
    monkeypatch.setattr(galera_cluster, "_state_of", lambda node: states[node.host.name])
    answers = []

    def wait_for(predicate, what, timeout, *_):
        answers.append(predicate())
        if not answers[-1]:
            raise SystemFailure(f"waited for {what}")

    cluster.host.wait_for = wait_for
    cluster.synced(["db1"], size=6)
    with pytest.raises(SystemFailure, match="2 nodes to be Synced; .*'size': 6.*'db2': None"):
        cluster.synced()
    states["db1"] = states["db2"] = {**states["db1"], "size": 2}
    cluster.synced()
    states["db2"] = {**states["db2"], "state": "Joined"}
    with pytest.raises(SystemFailure):
        cluster.synced()
    assert answers == [True, False, True, False]


def test_only_the_last_node_to_stop_leads(monkeypatch):
    cluster = Galera(hosts(3))
    last = {"db1": False, "db2": True, "db3": False}
    monkeypatch.setattr(GaleraNode, "stopped_last", lambda node: last[node.host.name])
    assert cluster._leader() is cluster.nodes[1]
    last["db1"] = None      # of a failed state transfer: it lacks data, and led
    assert cluster._leader() is cluster.nodes[1]
    last["db2"] = False
    with pytest.raises(SystemFailure, match="no node of galera was the last to stop"):
        cluster._leader()
    last.update(dict.fromkeys(last))
    assert cluster._leader() is cluster.nodes[0]    # none has ever run


@pytest.mark.parametrize("state, last", [
    (None, None), ("seqno: 7\nsafe_to_bootstrap: 1\n", True),
    ("seqno: -1\nsafe_to_bootstrap: 0\n", False), ("", False)])
def test_whether_a_node_was_the_last_to_stop(tmp_path, state, last):
    node = GaleraNode(here_host(tmp_path, "db1"))
    Path(node.data).mkdir(parents=True)
    if state is not None:
        Path(node.data, "grastate.dat").write_text(state)
    assert node.stopped_last() is last


@pytest.fixture
def started(monkeypatch):
    """(host, method, arguments) of the calls that nodes get."""
    log = []
    for method in ("deploy", "begin", "await_answer", "put", "kill"):
        monkeypatch.setattr(GaleraNode, method, lambda self, *given, _m=method, **_: log.append(
            (self.host.name, _m, given)))
    monkeypatch.setattr(GaleraNode, "stopped_last", lambda node: node.host.name == "db2")
    monkeypatch.setattr(Galera, "synced", lambda self: log.append(("all", "synced", ())))
    return log


def test_nodes_with_copied_data_start_together_once_and_later_after_the_last_to_stop(started):
    cluster = Galera(hosts(3), data=Path("/cache/seed/data"))
    cluster.nodes[1].host.process = lambda name: None
    cluster.nodes[1].host.wait_for = lambda *_: started.append(("db2", "listens", ()))
    cluster.deploy()
    assert {call[2] for call in started} == {(Path("/cache/seed/data"),)}
    started.clear()
    cluster.start()
    views = [given[0] for _, method, given in started if method == "put"]
    assert len(set(views)) == 3 and all("member: " in view for view in views)
    assert [given for _, method, given in started if method == "begin"] == [()] * 3
    started.clear()
    cluster.start()
    begun = [(host, given) for host, method, given in started if method == "begin"]
    assert begun[0] == ("db2", (galera_cluster.NEW_CLUSTER,)) and len(begun) == 3
    assert started.index(("db2", "listens", ())) == 1 and started[-1] == ("all", "synced", ())


def test_the_first_node_alone_gives_the_others_what_they_lack(started):
    """Of five joiners at once, those that got it from one that had just joined left again."""
    cluster = Galera(hosts(6))
    cluster.nodes[1].host.process = lambda name: None
    cluster.nodes[1].host.wait_for = lambda *_: None
    cluster.start()
    begun = {host: given for host, method, given in started if method == "begin" and host != "db2"}
    assert begun == dict.fromkeys(["db1", "db3", "db4", "db5", "db6"], ("--wsrep-sst-donor=db2",))


def test_a_cluster_that_does_not_start_is_killed(started, monkeypatch):
    cluster = Galera(hosts(2))
    monkeypatch.setattr(GaleraNode, "stopped_last", lambda node: False)
    with pytest.raises(SystemFailure, match="no node of galera was the last to stop"):
        cluster.start()
    assert sorted(started) == [("db1", "kill", ()), ("db2", "kill", ())]
