"""The doctor names what is missing, why, for whom and what to type; other commands use its words."""

import json
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.finding import Finding
from labbook.pipeline.setup import doctor, install


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A checkout with two studies, on a machine that has everything; tests take things away."""
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    for folder in ("notebooks", "environments"):
        (tmp_path / folder).mkdir()
    (tmp_path / "environments/local.yml").write_text("provider: namespaces\n")
    for study, limits, needs in (("small", "{cores: 1}", "{memory: 1G}"),
                                 ("large", "{cores: 2, memory: 2G}",
                                  "{memory: 8G, disk: {quick: 3G, full: 30G}, packages: [bonnie++]}")):
        (tmp_path / f"notebooks/{study}.ipynb").write_text("{}")
        (tmp_path / f"data/papers/{study}").mkdir(parents=True)
        (tmp_path / f"data/papers/{study}/lab.yml").write_text(
            f"sites: [lan]\nhosts: {{db: {{site: lan, role: db, limits: {limits}}}}}\nneeds: {needs}\n")
    has = SimpleNamespace(root=True, missing=set(), features={}, memory=16 << 30, disk=50 << 30,
                          cores=4, known=True)

    def as_root():
        if not has.root:
            raise LabError("only root", remedy="give this user passwordless sudo")
        return []

    def probes(names):
        return {name: Finding("", name, name not in has.features, "", has.features.get(name, "works"),
                              "load the module") for name in names}

    monkeypatch.setattr(install, "as_root", as_root)
    monkeypatch.setattr(install, "versions",
                        lambda names: {name: "1.0" for name in names if name not in has.missing})
    monkeypatch.setattr(install, "available", lambda name: has.known)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(doctor, "_probes", probes)
    monkeypatch.setattr(doctor, "_memory", lambda key: has.memory)
    monkeypatch.setattr(doctor, "_disk_free", lambda state: has.disk)
    monkeypatch.setattr(doctor, "_cores", lambda: has.cores)
    return has


def test_nothing_missing(machine, capsys):
    assert doctor.main() == 0
    machine_line, _, *lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("large  all ") and "2 cores" in lines[0] and "8 GB memory, 3 GB disk)" in lines[0]
    assert lines[1].startswith("small  all ") and "(1 cores, 1 GB memory)" in lines[1]
    assert lines[2:] == ["large needs 30 GB with --profile full", "",
                         "Nothing is missing. `labbook doctor -v` lists all that was looked at."]
    doctor.require()


def test_every_finding_is_listed_on_demand(machine, capsys):
    assert doctor.main(verbose=True) == 0
    output = capsys.readouterr().out
    assert "ok       iproute2" in output and "doctor -v" not in output


def test_a_study_that_lacks_something_says_what(machine, capsys):
    machine.missing = {"bonnie++"}
    assert doctor.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert "large  MISSING: bonnie++" in lines and lines[-1].startswith("1 missing.")
    assert any(line.startswith("small  all ") for line in lines) and not any(line.startswith("ok ") for line in lines)


CASES = {
    "package": (dict(missing={"bonnie++"}), ["bonnie++", "large", "labbook install large"]),
    "package of every study": (dict(missing={"iproute2"}), ["iproute2", "every study", "Type: labbook install"]),
    "package that this distribution has not": (
        dict(missing={"bonnie++"}, known=False), ["has no package bonnie++", "large"]),
    "privilege": (dict(root=False), ["root or sudo", "every study", "passwordless sudo"]),
    "kernel feature": (dict(features={"cgroup memory": "not mounted"}),
                       ["cgroup memory", "not mounted", "large", "load the module"]),
    "memory": (dict(memory=2 << 30), ["8 GB memory", "2 GB", "large", "larger machine"]),
    "disk": (dict(disk=1 << 30), ["3 GB disk", "1 GB", "large", "state"]),
    "cores": (dict(cores=1), ["2 cores", "large", "fewer cores"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_missing_is_named_with_its_reason_and_remedy(case, machine, capsys):
    lacks, parts = CASES[case]
    vars(machine).update(lacks)
    assert doctor.main() == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("MISSING"))
    assert all(part in " ".join(lines[at:at + 2]) for part in parts), lines[at:at + 2]
    assert sum(line.startswith("MISSING") for line in lines) == 1

    with pytest.raises(LabError) as error:
        doctor.require()
    assert all(part in str(error.value) for part in parts)


def test_what_a_host_of_one_experiment_needs_is_of_the_full_profile(machine, tmp_path):
    file = tmp_path / "data/papers/small/lab.yml"
    file.write_text(file.read_text().replace(
        "hosts: {", "hosts: {spindle: {site: lan, role: db, experiments: [flush], "
                    "limits: {disk: {size: 1G, model: hdd_2010}}}, "))
    machine.missing = {"libfuse3-dev"}
    doctor.require(["small"])
    with pytest.raises(LabError, match="libfuse3-dev.*\n*.*labbook install small --profile full"):
        doctor.require(["small"], profile="full")


def test_what_the_full_profile_needs_more_is_reported_and_stops_that_profile_alone(machine, capsys):
    machine.disk = 10 << 30
    assert doctor.main() == 0
    assert "large needs 30 GB with --profile full" in capsys.readouterr().out
    assert doctor.main(profile="full") == 1
    assert "MISSING  30 GB disk" in capsys.readouterr().out
    doctor.require(["large"])
    with pytest.raises(LabError, match="30 GB disk"):
        doctor.require(["large"], profile="full")
    doctor.require(["small"], profile="full")


def test_a_kernel_of_ones_own_is_looked_at_for_studies_whose_servers_boot_from_it(machine, tmp_path, capsys):
    (tmp_path / "environments/local.yml").write_text("provider: namespaces\nprograms: {kernel: /srv/kernel}\n")
    doctor.require()        # neither study has a cloud
    file = tmp_path / "data/papers/small/lab.yml"
    file.write_text(file.read_text() + "systems: [{name: openstack, host: db}]\n")
    with pytest.raises(LabError, match="kernel /srv/kernel/vmlinuz(.|\n)*small(.|\n)*Name a folder with vmlinuz"):
        doctor.require(["small"])
    doctor.require(["large"])


def test_a_study_is_not_stopped_by_what_another_lacks(machine):
    vars(machine).update(missing={"bonnie++"}, memory=2 << 30)
    doctor.require(["small"])
    with pytest.raises(LabError, match="bonnie"):
        doctor.require(["large"])


def test_no_kernel_feature_is_tried_without_privilege(machine, monkeypatch):
    machine.root = False
    monkeypatch.setattr(doctor, "_probes", lambda names: pytest.fail("tried without root"))
    assert doctor.main() == 1


def test_features_alone_are_reported_for_a_plan(machine):
    vars(machine).update(missing={"bonnie++"}, features={"cgroup memory": "not mounted"})
    assert [one.name for one in doctor.missing_features("large")] == ["cgroup memory"]
    machine.root = False
    assert doctor.missing_features("large") == []


def test_json_has_what_the_text_has(machine, capsys):
    machine.missing = {"bonnie++"}
    assert doctor.main(as_json=True) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    missing = [f for f in findings if not f["ok"]]
    assert [(f["name"], f["studies"]) for f in missing] == [("bonnie++", ["large"])]
    assert missing[0]["why"] and missing[0]["remedy"]
    assert next(f for f in findings if f["name"] == "iproute2")["found"] == "1.0"


CLOUDS = """provider: namespaces
clouds:
  older: {kind: openstack, credentials: CREDENTIALS, profile: here}
  other: {kind: openstack, credentials: CREDENTIALS, profile: here}
"""


@pytest.fixture
def clouds(machine, tmp_path):
    """A study with a system of label older, and an environment with a cloud of that name."""
    credentials = tmp_path / "clouds.yaml"
    credentials.write_text("clouds: {here: {auth: {auth_url: 'http://127.0.0.1:9/v3', username: u, "
                           "password: p, project_name: p}}}")
    credentials.chmod(0o600)
    lab = tmp_path / "data/papers/small/lab.yml"
    lab.write_text(lab.read_text() + "systems: [{name: mysql, label: older, host: db}]\n")
    (tmp_path / "environments/clouds.yml").write_text(CLOUDS.replace("CREDENTIALS", str(credentials)))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")    # the SDK's own
def test_a_cloud_that_stands_in_for_a_system_is_asked_before_anything_starts(clouds, capsys):
    with pytest.raises(LabError) as error:
        doctor.require(["small"], "environments/clouds.yml")
    message = str(error.value)
    assert "environments/clouds.yml: these clouds cannot run this yet" in message
    assert "clouds.older: cloud older" in message and "does not answer" in message and "small" in message
    assert "other" not in message      # no system has that label
    doctor.require(["large"], "environments/clouds.yml")


def test_a_cloud_that_knows_us_is_reported(clouds, monkeypatch, capsys):
    from labbook.systems.cloud import user_cloud

    monkeypatch.setattr(user_cloud, "api_of", lambda *_: SimpleNamespace(quota=dict))
    assert doctor.main(["small"], environment="environments/clouds.yml", verbose=True) == 0
    output = capsys.readouterr().out
    assert "clouds.older, of environments/clouds.yml" in output and "accepts the credentials" in output
