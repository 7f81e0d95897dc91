"""The experiments without servers: clusters that can be, phases, limits, and the metrics recorded."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn
from paper_stand_ins import point as a_point

from labbook import paths
from labbook.errors import InputError, SystemFailure
from labbook.papers.ceph_mds import clusters, experiments
from labbook.papers.ceph_mds.cache import of_both_orders
from labbook.workloads.files.load import PHASES as PATTERN_PHASES


def point(repeat=1, **params):
    return a_point(repeat=repeat, **{"osds": "memory", "replication": 1, "mds": 2, "mds_share": 0.2, "balance_s": 1,
                                     "directories": 4, "files": 1024,
                                     "watch_s": 0.25, "rest_within_s": 60, "seconds_at_most": 900, **params})


def test_who_takes_over_decides_the_standbys():
    params = {"osds": "memory", "replication": 2, "mds": 2, "balance_s": 1}
    assert clusters.ceph_settings(params) == {"osds": "memory", "replication": 2, "balance_s": 1, "active": 2}
    assert clusters.ceph_settings(params | {"grace_s": 5})["beacon_grace_s"] == 5
    assert clusters.ceph_settings(params | {"spare": True})["standby"] == 1
    assert clusters.ceph_settings(params | {"how": "standby_replay"})["replay"]
    assert clusters.ceph_settings(params | {"how": "restart"})["standby"] == 0


@pytest.mark.parametrize("wrong", [{"tool": "fio"}, {"pin": "two"}, {"how": "prayer"}, {"rank": 2},
                                   {"tool": "bonnie", "files": 1000}, {"mds": 9}])
def test_points_that_cannot_be_are_refused_before_a_lab(wrong):
    study = StandIn(None, folder=paths.papers("ceph_mds"))

    def experiment(**params):
        made = study.experiment(point(**params))
        made.study, made.name = study, "rates"
        return made

    clusters.check_points(experiment(tool="bonnie", pin="spread", how="restart", rank=1))
    with pytest.raises(InputError):
        clusters.check_points(experiment(**wrong))


def test_a_condition_is_awaited_for_so_long():
    answers = [False, False, True]
    assert clusters.reached(lambda: answers.pop(0), 5, 0) and answers == []
    assert not clusters.reached(lambda: False, 0, 0)


def test_deleted_files_have_left_when_no_purge_queue_works():
    busy = [1, 0]
    ceph = SimpleNamespace(
        ranks=lambda: {0: SimpleNamespace(name="mds1")},
        ask=lambda name, what: {"purge_queue": {"pq_executing": busy.pop(0), "pq_item_in_journal": 0}})
    assert clusters.at_rest(ceph, 5) and busy == []


def test_a_server_has_left_when_the_map_names_another_or_shows_it_as_laggy():
    def ceph(rank):
        return SimpleNamespace(ranks=lambda: {1: rank} if rank else {})

    assert not clusters.has_left(ceph(SimpleNamespace(name="mds1", laggy=False)), 1, "mds1")
    for rank in (None, SimpleNamespace(name="mds2", laggy=False), SimpleNamespace(name="mds1", laggy=True)):
        assert clusters.has_left(ceph(rank), 1, "mds1")


def test_pins_that_are_not_applied_in_time_are_a_failure():
    ceph = SimpleNamespace(owned=lambda: {0: ["/"], 1: ["/load/d1", "/other/d1"]})
    clusters.await_pinned(ceph, "load", 1)
    with pytest.raises(SystemFailure, match="2 directories"):
        clusters.await_pinned(ceph, "load", 2, seconds=0)


def test_remote_hosts_keep_the_ceilings_files_below_the_labs_folder():
    assert experiments.in_memory(SimpleNamespace(is_remote=False)) == "/dev/shm"
    assert experiments.in_memory(SimpleNamespace(is_remote=True, root="/srv/lab/c1")) == "/srv/lab/c1/ceiling"


PHASES = pd.DataFrame({"phase": ["sequential_create", "random_delete"], "started_s": [0.0, 5.0], "seconds": [4.0, 2.0],
                       "from_s": [1000.0, 1005.0], "to_s": [1004.0, 1007.0], "operations": [100, 100]})
SEEN = pd.DataFrame([{"t_s": 999.0 + i, "daemon": "mds1", "rank": 0, "inodes": 10 * i, "dirs": 1, "requests": 20 * i,
                      "forward": 0, "exported": 0, "exported_inodes": 0, "owned": ["/"]} for i in range(10)])


def test_bonnies_phases_become_epoch_seconds(monkeypatch):
    rows = PHASES.drop(columns=["from_s", "to_s", "operations"]).assign(files=50)
    monkeypatch.setattr(experiments, "bonnie", lambda host, path, **spec: SimpleNamespace(
        started=2000.0, rows=rows, metrics={"create_per_s": 9.0}, csv="1.98,2.00,x"))
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    monkeypatch.setattr(experiments, "clocks", lambda crew: ([0.5], 0.0))
    mount = SimpleNamespace(host="c1", path="/mnt")
    none, phases, metrics = experiments.by_tool(SimpleNamespace(point=point(tool="bonnie"), lab=None), [[mount]])
    assert none is None and list(phases["from_s"]) == [2000, 2005] and list(phases["to_s"]) == [2004, 2007]
    assert list(phases["operations"]) == [50, 50] and metrics["bonnie_version"] == "2.00"


def test_own_clients_pause_for_two_looks_and_work_in_pinned_folders(monkeypatch):
    specs = []
    monkeypatch.setattr(experiments, "metadata", lambda crew, mounts, **spec: specs.append(spec) or SimpleNamespace(
        started=2000.0, rows="rows", metrics={}, phases=pd.DataFrame({"started_s": [0.0], "ended_s": [4.0]})))
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    ceph = SimpleNamespace(pin_folder=lambda mount, folder, rank: folder)
    mounts = [[SimpleNamespace(ceph=ceph, path="/mnt")]]
    for params in ({"tool": "own"}, {"pin": "spread", "phase_s": 20, "clients": 4, "shared": True}):
        rows, phases, _ = experiments.by_tool(SimpleNamespace(point=point(**params), lab=None), mounts)
        assert rows == "rows" and phases["to_s"].item() == 2004
    plain, pinned = specs
    assert plain["pattern"] == "bonnie" and plain["fresh"] == []
    assert plain["pause_s"] == 0.5 and plain["homes"] == [] and plain["phase_s"] == 0 and plain["clients"] == 1
    assert plain["seconds_at_most"] == 900
    assert pinned["homes"] == ["rank0", "rank1"] and pinned["phase_s"] == 20 and pinned["shared"]


def test_rereading_goes_on_in_a_fresh_mount_and_the_earlier_one_is_ended(monkeypatch):
    ended = []

    def run(crew, mounts, *, pattern, fresh, before_phase, **_):
        assert (pattern, fresh) == ("remount", [[["/f1"]], [["/f2"]]])
        for phase in PATTERN_PHASES["remount"][1:]:
            before_phase(phase)
        return SimpleNamespace(started=0.0, rows=None, metrics={},
                               phases=pd.DataFrame({"started_s": [0.0], "ended_s": [4.0]}))

    monkeypatch.setattr(experiments, "metadata", run)
    monkeypatch.setattr(experiments.Crew, "of", lambda lab: "crew")
    mounts = [[[SimpleNamespace(ceph=None, path=path, end=lambda path=path: ended.append(path))]]
              for path in ("/mnt", "/f1", "/f2")]
    experiments.by_tool(SimpleNamespace(point=point(tool="remount"), lab=None), mounts[0], mounts[1:])
    assert ended == ["/mnt", "/f1"]


def test_servers_get_their_share_once_the_cluster_is_up(monkeypatch):
    done = []
    monkeypatch.setattr(clusters, "Ceph", lambda hosts, **_: SimpleNamespace(up=lambda: done.append("up")))
    hosts = {name: SimpleNamespace(name=name, role=role) for name, role in (("mon", "mon"), ("mds1", "mds"))}
    lab = SimpleNamespace(host=hosts.get, limit=lambda *given: done.append(given))
    clusters.cluster_up(lab, point(), ["mon", "mds1"])
    assert done == [("mds1", None), "up", ("mds1", 0.2)]


def test_a_cluster_whose_servers_do_not_come_back_is_made_anew(monkeypatch):
    done = []

    def formed():
        raise SystemFailure("a standby is missing")

    for await_formed in (lambda: None, formed):
        ceph = SimpleNamespace(await_formed=await_formed, up=lambda: done.append("up"))
        monkeypatch.setattr(clusters, "bring_up", lambda attempt, ceph=ceph: ceph)
        assert clusters.bring_up_whole(None) is ceph
    assert done == ["up"]


def test_each_run_has_the_requests_of_both_orders():
    rates = {f"{order}_create_per_s": 10.0 for order in ("sequential", "random")}
    found = experiments.server_metrics(rates, SEEN, PHASES)
    assert found["create_per_s"] == 10 and found["sequential_create_asked"] == pytest.approx(0.8)
    assert math.isnan(found["stat_cached_random_less_sequential"])


def test_lists_for_figures_are_those_of_the_first_repeat_and_of_free_directories():
    rows = pd.DataFrame({"phase": ["random_delete"], "ok": [True], "op": ["unlink"], "started_s": [5.0],
                         "seconds": [0.1]})
    assert "cached_t_s" in experiments.cached_through_phases(point(), None, PHASES, SEEN)
    assert experiments.cached_through_phases(point(), None, PHASES, SEEN)["sequential_over_random"] == 2
    assert "cached_t_s" not in experiments.cached_through_phases(point(repeat=2), None, PHASES, SEEN)
    assert "cached_t_s" in experiments.cached_by_pin(point(pin="none"), rows, PHASES, SEEN)
    for one in (point(pin="one"), point(pin="none", mds=1)):
        assert "cached_t_s" not in experiments.cached_by_pin(one, rows, PHASES, SEEN)


class Cluster:
    def __init__(self, comes_back=True):
        self.did, self.comes_back = [], comes_back

    def kill(self, rank):
        self.did.append(f"kill {rank}")
        return "mds2", 1000.0

    def fail(self, rank):
        self.did.append(f"fail {rank}")

    def ranks(self):
        return {}

    def start_mds(self, name):
        self.did.append(f"start {name}")
        return 1012.0

    def await_active(self, seconds):
        self.did.append(f"await {seconds}")
        if not self.comes_back:
            raise SystemFailure("not active")


@pytest.mark.parametrize("how, did", [("standby", []), ("mds_fail", ["fail 1"]), ("restart", ["start mds2"])])
def test_a_killed_server_is_replaced_as_the_point_says(how, did):
    ceph = Cluster()
    fault = point(how=how, rank=1, noticed_within_s=60, active_within_s=120)
    killed_s, metrics = experiments.kill_and_await(fault, ceph, 990.0)
    assert killed_s == 1000 and ceph.did == ["kill 1", *did, "await 120"] and metrics["came_back"] == 1
    assert metrics.get("restarted_s") == (22 if how == "restart" else None)


def test_a_rank_that_does_not_come_back_is_a_result():
    fault = point(how="standby", rank=1, active_within_s=120)
    assert experiments.kill_and_await(fault, Cluster(comes_back=False), 990.0)[1] == {"came_back": 0}


@pytest.mark.parametrize("mounts, answers, share", [(True, True, 0.5), (False, True, 0.0), (True, False, None)])
def test_only_a_client_that_cannot_mount_counts_as_one_that_lost_all(mounts, answers, share, monkeypatch):
    ended = []

    def up():
        if not mounts:
            raise SystemFailure("no metadata server answers")
        return SimpleNamespace(path="/after")

    def take(host, path, names):
        if not answers:
            raise SystemFailure("no inventory")
        return path

    monkeypatch.setattr(experiments, "take", take)
    monkeypatch.setattr(experiments, "compare", lambda before, found: {"right": int(found == "/after/tree-1")})
    ceph = SimpleNamespace(mount=lambda host, name: SimpleNamespace(host=host, up=up, end=lambda: ended.append(name)))
    before = pd.DataFrame({"name": ["a", "b"]})
    given = ceph, SimpleNamespace(host="c1", path="/mnt"), "/mnt/tree-1", before
    if share is None:
        with pytest.raises(SystemFailure, match="no inventory"):
            experiments.kept_for_another(*given)
    else:
        assert experiments.kept_for_another(*given) == share
    assert ended == ["afterwards"]


def test_a_tool_that_goes_in_order_only_rereads_by_one_fresh_mount(monkeypatch):
    asked = {}
    monkeypatch.setattr(experiments, "metadata", lambda *_, **given: asked.update(given) or SimpleNamespace(
        phases=pd.DataFrame({"started_s": [0.0], "ended_s": [1.0]}), started=0.0, rows=None, metrics={}))
    monkeypatch.setattr(experiments, "Crew", SimpleNamespace(of=lambda lab: None))
    one = point(tool="remount_in_order")
    assert experiments._stages(one) == 1 and experiments._stages(point(tool="remount")) == 2
    assert experiments._stages(point(tool="own")) == experiments._stages(point(tool="bonnie")) == 0
    mount = SimpleNamespace(path="/m", ceph=None)
    _, _, metrics = experiments.by_tool(SimpleNamespace(point=one, lab=None), [[mount]], [[[SimpleNamespace(path="/f")]]])
    assert set(metrics) == {f"random_{op}_per_s" for op in ("create", "stat", "reread", "delete")}
    both = of_both_orders(metrics | {f"sequential_{op}_per_s": 1.0 for op in ("create", "stat", "reread", "delete")})
    assert len(both) == 8 and all(math.isnan(value) for value in both.values())
    assert asked["pattern"] == "remount_in_order" and len(asked["fresh"]) == 1
    assert not any("random" in phase for phase in PATTERN_PHASES["remount_in_order"])
