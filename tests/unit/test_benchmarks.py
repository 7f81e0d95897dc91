"""What benchmarks/ keep of their rounds, and how they read what the other side prints."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest
import yaml
from labbook import paths
from labbook.errors import InputError, LabError

FOLDER = paths.checkout() / "benchmarks"
LISTED = yaml.safe_load((paths.checkout() / "data/benchmarks/rows.yml").read_text())


@pytest.fixture
def load(monkeypatch):
    """A function that imports a benchmark's module."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def found(name):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    found("shared")
    return found


@pytest.fixture
def rounds(load, tmp_path):
    """A function that makes the Rounds of benchmark lab_up, kept in a file."""
    module = load("rounds")

    def made(count=3, short=False, versions=None, **sizes):
        options = SimpleNamespace(rounds=count, short=short, json=tmp_path / "kept.json")
        return module.Rounds("lab_up", options, versions, **sizes)

    return made


def test_every_benchmark_that_is_listed_is_there():
    assert {f"{name}.py" for name in LISTED} <= {file.name for file in FOLDER.glob("*.py")}
    assert all(row["better"] in ("less", "more", "equal") for one in LISTED.values() for row in one["rows"].values())


def test_all_of_them_take_an_hour():
    assert sum(one["minutes"] for one in LISTED.values()) <= 60


def test_a_run_goes_on_where_the_last_one_ended(rounds, capsys):
    first = rounds()
    first.add("hosts_9", 1, 2)
    assert [*rounds().left("hosts_9")] == [1, 2]
    assert rounds().wanted("hosts_9") and not rounds(1).wanted("hosts_9")
    again = rounds(2)
    again.in_turns("hosts_9", [lambda: 1, lambda: 4])
    assert again.of("hosts_9") == [[1, 2], [1, 4]]
    assert "9 hosts up and down / Mininet" in capsys.readouterr().out


def test_sides_take_turns(rounds):
    order = []

    def way(name):
        return lambda: order.append(name) or 1

    rounds(3).in_turns("hosts_9", [way("ours"), way("theirs")])
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_rounds_of_other_versions_or_sizes_are_not_gone_on_with(rounds):
    rounds(versions={"mininet": "2.3"}, files=1).add("hosts_9", 1, 2)
    assert rounds(versions={"mininet": "2.3"}, files=1).of("hosts_9") == [[1, 2]]
    assert not rounds(versions={"mininet": "2.4"}, files=1).of("hosts_9")
    assert not rounds(versions={"mininet": "2.3"}, files=2).of("hosts_9")


def test_a_short_run_goes_on_with_nothing(rounds):
    rounds().add("hosts_9", 1, 2)
    assert not rounds(short=True).of("hosts_9")


def test_a_row_that_cannot_be_measured_says_why_until_it_is(rounds, tmp_path):
    rounds().absent("kathara", "no images")
    assert json.loads((tmp_path / "kept.json").read_text())["rows"]["kathara"]["absent"] == "no images"
    rounds().add("kathara", 1, 2)
    rounds().absent("kathara", "no images")
    row = json.loads((tmp_path / "kept.json").read_text())["rows"]["kathara"]
    assert row["rounds"] == [[1, 2]] and "absent" not in row


def test_an_unknown_row_is_refused(rounds):
    with pytest.raises(InputError, match="hosts_9"):
        rounds().add("hosts_8", 1, 2)


def test_what_was_measured_whole_is_published_and_the_rest_stays(load, tmp_path, monkeypatch):
    every = load("every")
    monkeypatch.setattr(every, "FOLDER", tmp_path)
    monkeypatch.setattr(every.shared, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "build_dir", lambda: tmp_path / "build")
    (tmp_path / "build/benchmarks").mkdir(parents=True)
    before = {name: {"rounds": [[1, 1], [1, 1]]} for name in ("a", "b", "part", "not_here", "gone")}
    before["longer"] = {"rounds": [[1, 1]] * 3}
    now = {"a": {"rounds": [[4, 4], [5, 5]]}, "longer": {"rounds": [[4, 4], [5, 5]]}, "part": {"rounds": [[6, 6]]}, "not_here": {"absent": "no netem"},
           "new_part": {"rounds": [[7, 7]]}, "new_not_here": {"absent": "no netem"}}
    (tmp_path / "one.json").write_text(json.dumps({"rows": before}))
    (tmp_path / "build/benchmarks/one.json").write_text(json.dumps({"count": 2, "rows": now}))
    every.publish("one", dict.fromkeys(("a", "b", "longer", "part", "not_here", "new_part", "new_not_here", "c"), {}))
    assert json.loads((tmp_path / "one.json").read_text())["rows"] == {
        "a": now["a"], **{name: before[name] for name in ("b", "longer", "part", "not_here")},
        "new_not_here": now["new_not_here"]}


def test_results_of_cassandra_stress_are_read(load):
    read = load("keyvalue_load").stress_calls
    output = "Results:\nOp rate   :   14,285 op/s\nTotal partitions          :    200,000 [READ: 200,000]\n" \
             "Total errors              :          0 [READ: 0]\n"
    assert read(output) == 200000
    for wrong in (output.replace("     0 [", "     3 ["), "no results"):
        with pytest.raises(LabError):
            read(wrong)


def test_a_report_of_latte_is_read(load):
    read = load("keyvalue_load").latte_calls
    assert read({"result": {"request_count": 7, "error_count": 0}}) == 7
    with pytest.raises(LabError):
        read({"result": {"request_count": 7, "error_count": 1}})


def test_the_mean_of_ping_is_read(load):
    assert load("link_error").mean_ms("rtt min/avg/max/mdev = 10.1/10.25/10.9/0.1 ms") == 10.25


def test_pipelines_have_a_step_for_each_study(load):
    noop = load("noop_run")
    stages = yaml.safe_load(noop.stages(["a", "b"]))["stages"]
    assert [*stages] == ["a", "b"] and stages["b"]["outs"] == ["dvc-b.ipynb"]
    rules = noop.rules(["a", "b"])
    assert rules.count("rule ") == 3 and 'output: "snakemake-b.ipynb"' in rules


def test_a_playbook_has_as_many_tasks_as_were_asked(load):
    tasks = yaml.safe_load(load("remote_command").playbook(3))[0]["tasks"]
    assert tasks == [{"ansible.builtin.command": "true"}] * 3


def test_ccm_gets_a_folder_as_of_a_tarball(load):
    made = load("ring_up").files("-cp conf:a.jar")
    assert made["0.version.txt"] == "5.0.8" and made["java_options"].endswith("-cp conf:a.jar")
    assert "skip_wait_for_gossip" not in made["java_options"]
    assert yaml.safe_load(made["conf/cassandra.yaml"])["seed_provider"]


def test_readme_has_the_figures_of_the_committed_rounds():
    from labbook.pipeline.book import compared

    fifty = compared.read()["lab_up"][1][1]
    text = (paths.checkout() / "README.md").read_text()
    assert f"Fifty are up and down in {fifty.labbook:.2f} s, where Mininet takes {fifty.other:.2f} s" in text
