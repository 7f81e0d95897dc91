"""A study: what remains, its summary and conditions, and what it refuses."""

import pandas as pd
import pytest
from study_stand_ins import FakeLab

from labbook.errors import InputError, SystemFailure
from labbook.study import Study
from labbook.study.publication import published


def test_a_run_measures_everything_once_and_a_second_nothing(make, measure, labs):
    study, speed = make(repeats=2)
    assert measure(study, speed) == speed.points()
    study.complete()
    assert len(labs.made) == 1 and labs.made[0].downs == 1
    again, speed = make(repeats=2)
    assert measure(again, speed) == []
    again.complete()
    assert len(labs.made) == 1, "with every record there, no lab is needed"
    assert len(speed.summary()) == 8


def test_the_lab_has_what_an_experiment_has_alone_while_it_is_measured(root, make, measure, monkeypatch):
    ups = []

    class Lab(FakeLab):
        @classmethod
        def up(cls, description, environment):
            ups.append({host.name: host.limits.get("disk", {}).get("model") for host in description.hosts})
            return cls()

    monkeypatch.setattr("labbook.lab.Lab", Lab)
    (root / "data/papers/demo/lab.yml").write_text(
        "sites: [lan]\nhosts:\n"
        "  server: {site: lan, role: db, limits: {disk: {size: 1G, model: hdd_2010, modelled_in: [seeks]}}}\n"
        "  spindle: {site: lan, role: db, experiments: [flush]}\n")
    with Study("demo") as study:
        for experiment in [study.experiment(name, {"system": ["a", "b"]})
                           for name in ("speed", "more", "flush", "seeks", "last")]:
            measure(study, experiment)
        assert ups == [{"server": None}, {"server": None, "spindle": None}, {"server": "hdd_2010"}, {"server": None}]


def test_an_experiment_that_lab_yml_alone_names_is_refused(root, make, measure):
    (root / "data/papers/demo/lab.yml").write_text(
        "sites: [lan]\nhosts:\n"
        "  server: {site: lan, role: db, limits: {disk: {size: 1G, model: hdd_2010, modelled_in: [sped]}}}\n")
    with pytest.raises(InputError, match="no experiment 'sped' is declared, did you mean 'speed'") as refused:
        measure(*make())
    assert refused.value.file.name == "lab.yml" and refused.value.allowed == ["speed"]


def test_a_summary_has_a_row_a_point(make, measure):
    study, speed = make()
    measure(study, speed, lambda p: 0.01 * p.clients, metrics={"outcome": "right", "over": [1, 2]})
    frame = speed.summary()
    assert list(frame.columns[:7]) == ["point", "system", "clients", "repeat", "block", "order",
                                       "stale"]
    assert list(frame["point"]) == [p.key for p in speed.points()]
    row = frame[(frame["system"] == "b") & (frame["clients"] == 2)].iloc[0]
    assert (row["n"], row["errors"], row["outcome"], list(row["over"])) == (10, 1, "right", [1, 2])
    assert row["mean_ms"] == row["p99_ms"] == row["max_ms"] == pytest.approx(20)
    assert row["seconds"] == pytest.approx(0.2) and row["rate_per_s"] == pytest.approx(45)
    assert not frame["stale"].any()


def test_raw_rows_and_series_stay_to_be_read(make, measure):
    study, speed = make()
    measure(study, speed, series={"disk": pd.DataFrame({"sector": [7]})})
    point = speed.points()[0]
    assert len(speed.rows(point)) == 10 and list(speed.series(point, "disk")["sector"]) == [7]


def test_conditions_tell_where_and_when(make, measure):
    study, speed = make()
    assert study.conditions() == {}
    measure(study, speed)
    conditions = study.conditions()
    assert conditions["points"] == 4 and conditions["stale"] == 0 and conditions["profile"] == "quick"
    assert conditions["from"] <= conditions["to"] and conditions["cpu"] and conditions["kernel"]


def test_conditions_tell_of_each_machine_that_measured(make, measure, monkeypatch):
    study, speed = make()
    real = published.provenance

    def with_cpu(meta, profile):
        found = real(meta, profile)
        cpu = "Opal" if meta["key"] == speed.points()[0].key else "Agate"
        return found | {"machine": found["machine"] | {"cpu": cpu, "cores": 2}}

    measure(study, speed)
    monkeypatch.setattr(published, "provenance", with_cpu)
    conditions = study.conditions()
    assert conditions["cpu"] == "Agate (3 of 4 points), Opal (1 of 4 points)" and conditions["cores"] == 2


RACK = """provider: ssh
user: opal
key: /home/me/.ssh/lab
root: /home/opal/labs
hosts: {rack1: {address: gate.example.org, data: 10.0.0.7, roles: [db]}}
"""
SECRETS = ("opal", "/home/me/.ssh/lab", "gate.example.org", "10.0.0.7")
KIND = {"cpu": "Some CPU", "cores": 4, "memory_gib": 7.8, "kernel": "6.1", "system": "Debian"}


@pytest.fixture
def rack(root, labs, monkeypatch):
    """A study on hosts elsewhere, of a lab that knows what kind of machine each is."""
    (root / "environments" / "rack.yml").write_text(RACK)
    facts = {"hosts": {"s": {"machine": KIND}, "t": {"machine": KIND}, "c": {"cores": [0]}}}
    study = Study("demo", "environments/rack.yml", bring_up=labs)
    up = labs.__call__
    monkeypatch.setattr(study.session, "_bring_up", lambda: _with(up(None, None), facts=lambda: facts))
    yield study, study.experiment("speed", setup={"system": ["a", "b"]})
    study.close()


def _with(lab, **attributes):
    vars(lab).update(attributes)
    return lab


def test_conditions_of_hosts_elsewhere_tell_their_kinds(rack, measure):
    measure(*rack)
    assert rack[0].conditions()["hosts"] == {"s, t": KIND}
    assert rack[0].place.startswith("rack-")


def test_no_record_holds_addresses_users_or_keys(rack, root):
    """Neither of a point that came out nor of one that failed; the rest of their messages stays."""
    study, speed = rack
    message = "opal@gate.example.org (/home/me/.ssh/lab): 10.0.0.7:3306 refused /home/opal/labs/x"
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            attempt.record([{"seconds": 1.0, "ok": False, "error": message}], facts={"at": [message]},
                           series={"log": pd.DataFrame({"line": [message]})})
            if number:
                raise SystemFailure(message, log=message)
    point, failed = speed.points()
    texts = [str(study.records("speed").meta(point.key)), speed.rows(point).to_string(),
             speed.series(point, "log").to_string(), str(speed.failures())]
    texts += [path.read_text() for path in root.glob("data/records/**/*") if path.suffix != ".parquet"
              and path.is_file()]
    assert "rack1 (KEY): rack1:3306 refused ROOT/x" in texts[1] and "rack1 (KEY)" in texts[3]
    assert len(texts) > 4 and "Traceback" in "".join(texts)
    assert not [secret for secret in SECRETS for text in texts if secret in text]


@pytest.mark.parametrize("change, message", [
    ({"name": "deno"}, "did you mean 'demo'"),
    ({"environment": "environments/lokal.yml"}, "local.yml")])
def test_a_study_that_is_not_there_is_refused(root, change, message):
    with pytest.raises(InputError, match=message):
        Study(**({"name": "demo"} | change)).place


def test_records_of_another_machine_are_not_seen(make, measure, monkeypatch):
    study, speed = make()
    measure(study, speed)
    other, speed = make()
    other.place = "another"
    assert len(list(speed.remaining())) == 4 and len(speed.summary()) == 0


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_cell_that_is_interrupted_between_two_points_takes_the_lab_down(make, labs, monkeypatch, by_hand):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    monkeypatch.setattr("labbook.study.parameters.given.shell", lambda: shell)
    study, _ = make()
    shell.user_ns["up"] = study.lab if by_hand else study.lab_up
    shell.run_cell("up()")
    shell.run_cell("1 / 0")
    assert labs.made[0].downs == 0
    shell.run_cell("raise KeyboardInterrupt")
    assert labs.made[0].downs == (0 if by_hand else 1)
