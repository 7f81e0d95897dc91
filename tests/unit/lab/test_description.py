import math

import pytest

from labbook.errors import InputError
from labbook.lab.description import LabDescription, expand
from labbook.lab.host import as_root
from labbook.lab.remote import root

GOOD = {
    "sites": ["a", "b"],
    "hosts": {"db[1-3]": {"site": "a", "role": "db", "limits": {"memory": "2G"}},
              "client": {"site": "b", "role": "client", "limits": {"cores": 1}}},
    "links": [{"between": ["a", "b"], "rtt_ms": 100}],
    "needs": {"memory": "3G"},
}


def changed(**changes):
    return {**GOOD, **changes}


def test_reads_hosts_with_sizes_in_bytes():
    lab = LabDescription.parse(GOOD)
    assert [h.name for h in lab.hosts] == ["db1", "db2", "db3", "client"]
    assert lab.hosts[0].limits == {"memory": 2 << 30}
    assert lab.needs["memory"] == 3 << 30
    assert lab.cores == 1


def test_a_host_of_one_experiment_is_there_for_that_alone():
    lab = LabDescription.parse(changed(hosts={**GOOD["hosts"], "disk": {
        "site": "a", "role": "db", "experiments": ["flush", "fill"]}}))
    names = {one: [host.name for host in lab.of(one).hosts] for one in (None, "speed", "flush", "fill")}
    assert names[None] == names["speed"] == ["db1", "db2", "db3", "client"]
    assert names["flush"] == names["fill"] == [*names[None], "disk"] == [host.name for host in lab.hosts]


def test_a_site_without_hosts_in_an_experiment_is_not_there_nor_are_its_links():
    lab = LabDescription.parse({"sites": ["a", "b", "c"], "hosts": {
        "x": {"site": "a", "role": "db"}, "y": {"site": "b", "role": "db"},
        "far": {"site": "c", "role": "db", "experiments": ["flush"]}},
        "links": [{"between": ["a", "b"]}, {"between": ["b", "c"], "rtt_ms": 10}]})
    for one in (None, "speed"):
        assert lab.of(one).sites == ("a", "b") and lab.of(one).links == ({"between": ["a", "b"]},)
    assert (lab.of("flush").sites, lab.of("flush").links) == (lab.sites, lab.links)


@pytest.mark.parametrize("name", [as_root.STAYS, root.PROGRAMS, "apt", "artifacts", "journal", "software"])
def test_a_host_has_no_name_of_the_labs_own_files(name):
    with pytest.raises(InputError, match=f"^lab.yml: hosts.{name}: the lab's own {name} .*any other name"):
        LabDescription.parse(changed(hosts={**GOOD["hosts"], name: {"site": "a", "role": "db"}}))


def test_a_disk_has_its_model_in_the_experiments_that_are_named():
    lab = LabDescription.parse(changed(hosts={**GOOD["hosts"], "disk": {"site": "a", "role": "db", "limits": {
        "disk": {"size": "1G", "model": "hdd_2010", "modelled_in": ["flush", "fill"]}}}}))
    disks = {one: lab.of(one).host("disk").limits["disk"] for one in (None, "speed", "flush", "fill")}
    assert disks[None] == disks["speed"] == {"size": 1 << 30}
    assert disks["flush"] == disks["fill"] and set(disks["fill"]) == {"size", "model", "order", "figures"}
    assert lab.apart == {"flush", "fill"}


def test_a_profile_may_need_more_disk_than_another():
    one, two, other = (LabDescription.parse(changed(needs={"disk": disk})) for disk in (
        "1G", {"quick": "1G", "full": "30G"}, {"quick": "2G"}))
    assert [lab.disk_bytes("quick") >> 30 for lab in (one, two, other)] == [1, 1, 2]
    assert [lab.disk_bytes("full") >> 30 for lab in (one, two, other)] == [1, 30, 2]
    assert LabDescription.parse(changed(needs={})).disk_bytes("full") == 0
    for wrong in ({"full": "3G"}, {"quick": "3G", "most": "3G"}, {"quick": "much"}):
        with pytest.raises(InputError, match="needs.disk"):
            LabDescription.parse(changed(needs={"disk": wrong}))


@pytest.mark.parametrize("limits, key", [
    ({"quota": math.inf}, "quota"), ({"quota": math.nan}, "quota"), ({"memory": "0.5"}, "memory"),
    ({"memory": "0"}, "memory"), ({"memory": 512}, "memory"), ({"memory": "15M"}, "memory"),
    ({"disk": {"size": 8}}, "disk.size"),
    ({"disk": {"size": "1G", "mb_per_s": math.inf}}, "disk.mb_per_s"),
    ({"disk": {"size": "1G", "mb_per_s": math.nan}}, "disk.mb_per_s"),
    ({"disk": {"size": "1G", "read_ahead_kb": 130}}, "disk.read_ahead_kb: .*multiples of 4 from 0 to 1048576"),
    ({"disk": {"size": "1G", "read_ahead_kb": 1 << 21}}, "disk.read_ahead_kb")])
def test_a_limit_that_is_none_is_refused_with_its_key(limits, key):
    with pytest.raises(InputError, match=f"limits.{key}"):
        LabDescription.parse(changed(hosts={"db": {"site": "a", "role": "db", "limits": limits}}))


def test_an_endless_range_is_refused_before_it_is_listed():
    with pytest.raises(InputError, match="too many hosts"):
        expand("db[1-99999999999]")


def test_ranges_expand():
    assert expand("db[9-11]") == ["db9", "db10", "db11"]
    assert expand("db") == ["db"]


HOST = {"site": "a", "role": "db"}
WRONG = {
    "unknown key": (changed(host={}), "host", "hosts"),
    "experiments that are no list": (changed(hosts={"x": {**HOST, "experiments": "flush"}}),
                                     "hosts.x.experiments", "array"),
    "system on a host of one experiment": (changed(systems=[{"name": "mysql", "host": "x"}], hosts={
        **GOOD["hosts"], "x": {**HOST, "experiments": ["flush"]}}), "systems.0.host", "db1"),
    "cores of a host of one experiment": (changed(hosts={
        "x": {**HOST, "limits": {"cores_of": "y"}},
        "y": {"site": "b", "role": "db", "limits": {"cores": 1}, "experiments": ["flush"]}}),
        "hosts.x.limits.cores_of", "'y' has no cores"),
    "no sites": ({"hosts": GOOD["hosts"]}, "sites", "sites"),
    "unknown site": (changed(hosts={"x": {"site": "c", "role": "db"}}), "hosts.x.site", "a, b"),
    "misspelt host key": (changed(hosts={"x": {**HOST, "limit": {}}}), "hosts.x.limit", "limits"),
    "wrong type": (changed(hosts={"x": {**HOST, "limits": {"cores": "2"}}}),
                   "hosts.x.limits.cores", "integer"),
    "zero cores": (changed(hosts={"x": {**HOST, "limits": {"cores": 0}}}),
                   "hosts.x.limits.cores", "1"),
    "cores of nobody": (changed(hosts={"x": {**HOST, "limits": {"cores_of": "y"}},
                                       "y": {"site": "b", "role": "db"}}),
                        "hosts.x.limits.cores_of", "'y' has no cores"),
    "cores twice": (changed(hosts={"x": {**HOST, "limits": {"cores_of": "y", "cores": 1}},
                                   "y": {"site": "b", "role": "db", "limits": {"cores": 1}}}),
                    "hosts.x.limits", "one of the two"),
    "a name that YAML reads as nothing": (changed(hosts={None: HOST}), "hosts.None", "a-z"),
    "endless minutes": (changed(needs={"minutes": {"quick": float("inf")}}), "needs.minutes.quick", "a year at most"),
    "negative minutes": (changed(needs={"minutes": {"full": -5}}), "needs.minutes.full", "minutes"),
    "endless seconds": (changed(quick={"claims": "all", "seconds": float("inf")}), "quick.seconds", "a year at most"),
    "size": (changed(hosts={"x": {**HOST, "limits": {"memory": "2 bananas"}}}),
             "hosts.x.limits.memory", "512M"),
    "scheduler": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "scheduler": "cfq"}}}}), "hosts.x.limits.disk.scheduler", "bfq"),
    "a model of a disk": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "model": "hdd_2011"}}}}), "hosts.x.limits.disk.model", "did you mean 'hdd_2010'? (allowed: hdd_2010, "),
    "an order of requests": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "model": "hdd_2010", "order": "cfq"}}}}), "hosts.x.limits.disk.order", "fcfs, elevator"),
    "an order without a model": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "order": "fcfs"}}}}), "hosts.x.limits.disk.order", "a model beside"),
    "experiments without a model": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "modelled_in": ["flush"]}}}}), "hosts.x.limits.disk.modelled_in", "a model beside"),
    "a key of a model": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "model": "hdd_2010", "rpm": 5400}}}}), "hosts.x.limits.disk.rpm", "model, order"),
    "a trace that is no yes or no": (changed(hosts={"x": {**HOST, "limits": {"disk": {
        "size": "1G", "trace": "blktrace"}}}}), "hosts.x.limits.disk.trace", "boolean"),
    "a file system that is no yes or no": (changed(hosts={"x": {**HOST, "limits": {
        "fuse": "ceph"}}}), "hosts.x.limits.fuse", "boolean"),
    "host's name": (changed(hosts={"Db_1": HOST}), "hosts.Db_1", "a-z"),
    "too long a name": (changed(hosts={"a-very-long-name": HOST}), "hosts.a-very", "12"),
    "host twice": (changed(hosts={"db[1-2]": HOST, "db2": HOST}), "hosts.db2", "twice"),
    "router": (changed(hosts={"x": {"site": "a", "role": "router"}}), "hosts.x", "links"),
    "empty site": (changed(hosts={"x": HOST}, links=[]), "sites", "'b'"),
    "link to nowhere": (changed(links=[{"between": ["a", "c"]}]), "links.0.between", "a, b"),
    "link to itself": (changed(links=[{"between": ["a", "a"]}]), "links.0.between", "two sites"),
    "link twice": (changed(links=[{"between": ["a", "b"]}, {"between": ["b", "a"]}]),
                   "links.1.between", "once"),
    "negative delay": (changed(links=[{"between": ["a", "b"], "rtt_ms": -1}]),
                       "links.0.rtt_ms", "from 0 up"),
    "system nowhere": (changed(systems=[{"name": "mysql", "host": "db9"}]),
                       "systems.0.host", "db1"),
    "system on no host's name": (changed(systems=[{"name": "mysql", "host": "db[1-9"}]),
                                 "systems.0.host", "a range such as"),
    "system nowhere in a range": (changed(systems=[{"name": "mysql", "host": ["client", "db[2-4]"]}]),
                                  "systems.0.host", "'db4'"),
    "system twice on a host": (changed(systems=[{"name": "mysql", "host": ["db1", "db[1-3]"]}]),
                               "systems.0.host", "'db1' is named twice"),
    "system on hosts that are none": (changed(systems=[{"name": "mysql", "host": []}]),
                                      "systems.0.host", "a list of these"),
    "too many sites": (changed(sites=[f"s{i}" for i in range(15)]), "sites", "14"),
    "too many hosts beside routers": (changed(hosts={"x[1-240]": {**HOST, "site": "a"}}, sites=[*"abcdefg"],
                                              links=[{"between": ["a", s]} for s in "bcdefg"]),
                                      "hosts", "245 together, 2 hosts fewer"),
    "too many hosts": (changed(hosts={"x[1-241]": HOST, "y": {"site": "b", "role": "db"}}),
                       "hosts", "240"),
}


@pytest.mark.parametrize("data, key, expected", WRONG.values(), ids=WRONG)
def test_wrong_lab_files_name_file_key_and_what_is_allowed(data, key, expected):
    with pytest.raises(InputError) as error:
        LabDescription.parse(data, file="lab.yml")
    text = str(error.value)
    assert text.startswith("lab.yml: ")
    assert key in text and expected in text


def test_systems_are_found_by_label_and_hosts_share_the_cores_of_several():
    lab = LabDescription.parse({"sites": ["a"], "hosts": {
        "x": {**HOST, "limits": {"cores": 1}}, "y": {**HOST, "limits": {"cores": 2}},
        "big": {**HOST, "limits": {"cores_of": ["x", "y"]}},
        "same": {**HOST, "limits": {"cores_of": "x"}}}, "systems": [
        {"name": "mysql", "host": "x"},
        {"name": "mysql", "host": "big", "label": "tuned", "settings": {"engine": "MyISAM"}}]})
    assert lab.system("mysql") == ("mysql", {})
    assert lab.system("tuned") == ("mysql", {"engine": "MyISAM"})
    assert [lab.host(n).limits["cores_of"] for n in ("big", "same")] == [["x", "y"], ["x"]]
    with pytest.raises(InputError, match="mysql, tuned"):
        lab.system("other")


@pytest.mark.parametrize("written, hosts", [
    ("db2", ["db2"]), ("db[1-2]", ["db1", "db2"]), (["client", "db[2-3]", "db1"],
                                                    ["client", "db2", "db3", "db1"])])
def test_a_system_is_on_a_host_or_on_several_in_their_order(written, hosts):
    lab = LabDescription.parse(changed(systems=[{"name": "mysql", "host": written}]))
    assert lab.systems == ({"name": "mysql", "host": written, "hosts": hosts},)


def test_a_key_given_twice_is_an_error(tmp_path):
    file = tmp_path / "lab.yml"
    file.write_text("sites: [a]\nhosts: {}\nsites: [b]\n")
    with pytest.raises(InputError, match="line 3.*duplicate key 'sites'"):
        LabDescription.load(file)


def test_a_merge_key_is_an_error_that_says_what_to_write(tmp_path):
    file = tmp_path / "lab.yml"
    file.write_text("sites: [a]\nhosts:\n  x: &x {site: a, role: db}\n  y: {<<: *x}\n")
    with pytest.raises(InputError, match="line 4.*the key << merges nothing here; write the keys out"):
        LabDescription.load(file)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="none.yml: no such file"):
        LabDescription.load(tmp_path / "none.yml")
