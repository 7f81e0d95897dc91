import pytest

from labbook.lab.local import cgroups

LIMITS = {"cores": 1, "quota": 0.5, "memory": 1 << 30,
          "disk": {"size": 1 << 30, "iops": 100, "mb_per_s": 60}}


@pytest.fixture
def v1(tmp_path):
    for controller in ("cpu", "cpuset", "memory", "blkio"):
        (tmp_path / controller).mkdir()
    return tmp_path


@pytest.fixture
def v2(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory")
    return tmp_path


def test_version_one_has_a_folder_for_each_controller(v1):
    assert cgroups.version(v1) == 1
    places = cgroups.folders("t1", "db", cgroups.wanted(LIMITS), v1)
    assert places["io"] == v1 / "blkio/labbook-t1/db"
    assert len(set(places.values())) == 4


def test_version_two_has_one_folder(v2):
    assert cgroups.version(v2) == 2
    places = cgroups.folders("t1", "db", cgroups.wanted(LIMITS), v2)
    assert set(places.values()) == {v2 / "labbook-t1/db"}


def test_no_limit_no_folder(v1):
    assert cgroups.folders("t1", "db", cgroups.wanted({}), v1) == {}


@pytest.mark.parametrize("version, expected", [
    (1, {("cores", "cpuset.cpus", "0"), ("quota", "cpu.cfs_quota_us", 5000),
         ("memory", "memory.limit_in_bytes", 1 << 30),
         ("io", "blkio.throttle.write_iops_device", "7:0 100"),
         ("io", "blkio.throttle.read_bps_device", "7:0 60000000")}),
    (2, {("cores", "cpuset.cpus", "0"), ("quota", "cpu.max", "5000 10000"),
         ("memory", "memory.max", 1 << 30),
         ("io", "io.max", "7:0 rbps=60000000 wbps=60000000 riops=100 wiops=100")}),
])
def test_what_is_written(version, expected):
    assert expected <= set(cgroups.settings(LIMITS, [0], "7:0", version))


def test_version_one_limits_writes_of_the_root_group_too_until_the_disk_is_gone(v1):
    """Writeback is charged to the root group, so a host's writes had no limit without it; and the next lab that gets
    the device would keep that limit."""
    places = cgroups.folders("t1", "db", {"io"}, v1)
    cgroups.make(places, v1)
    cgroups.apply(places, cgroups.settings({"disk": LIMITS["disk"]}, None, "7:0", 1), v1)
    own, root = ({file.name: file.read_text() for file in place.glob("blkio.throttle.*")} for place in (
        places["io"], v1 / "blkio"))
    writes = {"blkio.throttle.write_bps_device": "7:0 60000000", "blkio.throttle.write_iops_device": "7:0 100"}
    assert root == writes, "reads are charged to the host"
    assert own == writes | {name.replace("write", "read"): limit for name, limit in writes.items()}
    cgroups.unthrottle("7:0", v1)
    assert {(v1 / "blkio" / name).read_text() for name in writes} == {"7:0 0"}


def test_a_small_share_has_a_longer_period_and_none_lifts_it():
    assert cgroups.quota(0.05, 2) == [("quota", "cpu.max", "1000 20000")]
    assert cgroups.quota(None, 2) == [("quota", "cpu.max", "max 10000")]
    for share in (n / 1000 for n in range(10, 1000)):       # the kernel refuses less than 1000 us
        left, period = map(int, cgroups.quota(share, 2)[0][2].split())
        assert left >= cgroups.LEAST_US and abs(left / period / share - 1) < 0.002
    assert cgroups.quota(None, 1)[-1] == ("quota", "cpu.cfs_quota_us", -1)


@pytest.mark.parametrize("version, file", [("v1", "memory/labbook-t1/db/memory.oom_control"),
                                           ("v2", "labbook-t1/db/memory.events")])
def test_processes_that_the_kernel_ended_are_counted(version, file, request):
    root = request.getfixturevalue(version)
    assert cgroups.ended_for_memory("t1", "db", root) == 0
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text("oom_kill_disable 0\nunder_oom 0\noom 7\noom_kill 3\n")
    assert cgroups.ended_for_memory("t1", "db", root) == 3


def test_removal_keeps_a_lab_folder_that_others_still_use(v1):
    one, two = v1 / "cpu/labbook-t1/a", v1 / "cpu/labbook-t1/b"
    one.mkdir(parents=True), two.mkdir()
    cgroups.remove(one)
    assert two.exists()
    cgroups.remove(two)
    cgroups.remove(two)
    assert not two.parent.exists()


def test_removal_takes_what_containers_left_below(v1):
    """A host with such groups did not go down."""
    one = v1 / "cpu/labbook-t1/a"
    (one / "machine/lxc-7-one/inner").mkdir(parents=True)
    cgroups.remove(one)
    assert not one.parent.exists()


def test_groups_of_a_hosts_name_are_found_in_all_hierarchies_of_version_one(v1):
    known, made, others = v1 / "freezer/labbook-t1/a", v1 / "devices/labbook-t1/a", v1 / "devices/labbook-t2/a"
    for place in (made, others):    # the known one may be gone
        place.mkdir(parents=True)
    assert cgroups.alike(known, v1) == [known, made]


def test_a_host_has_one_group_in_version_two(v2):
    assert cgroups.alike(v2 / "labbook-t1/a", v2) == [v2 / "labbook-t1/a"]


def test_a_throttled_disk_has_memory_counted_with_it_in_version_two(v2, monkeypatch):
    """Else writeback is the root group's, which has no limit."""
    given = []
    monkeypatch.setattr(cgroups, "_enable", lambda folder, controller: given.append(controller))
    limits = {"disk": {"size": 1 << 30, "iops": 100}}
    cgroups.make(cgroups.folders("t1", "db", cgroups.wanted(limits), v2), v2)
    assert set(given) == {"io", "memory"}
