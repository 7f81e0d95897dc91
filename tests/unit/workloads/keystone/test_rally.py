"""What Rally is given, and what its report becomes."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from labbook.errors import InputError
from labbook.study.summary import summarise
from labbook.workloads.keystone import rally as rally_load
from labbook.workloads.keystone.rally import PACKAGES, rally

CREDENTIALS = {"auth_url": "http://10.0.0.1:5000/v3", "username": "admin", "password": "secret",
               "project": "lab", "domain": "Default"}


def call(start, seconds, actions=(), error=()):
    return {"timestamp": start, "duration": seconds, "error": list(error), "atomic_actions": [
        {"name": f"keystone_v3.{name}", "started_at": start + at, "finished_at": start + until,
         **more} for name, at, until, more in actions]}


def report(*calls):
    return {"tasks": [{"subtasks": [{"workloads": [{"data": list(calls)}]}]}]}


def test_a_report_becomes_a_row_a_call_and_a_step():
    rows = rally_load.rows(report(
        call(101.0, 0.5, [("create_user", 0.25, 0.5, {})]),
        call(100.0, 1.0, [("create_user", 0.25, 0.75, {}), ("list_users", 0.75, 1.0, {})])))
    assert rows[["call", "step", "started_s", "seconds"]].values.tolist() == [
        [0, "", 100, 1], [0, "authenticate", 100, 0.25], [0, "create_user", 100.25, 0.5],
        [0, "list_users", 100.75, 0.25],
        [1, "", 101, 0.5], [1, "authenticate", 101, 0.25], [1, "create_user", 101.25, 0.25]]
    assert rows.ok.all()
    assert summarise(rows)["mean_ms"] == 750 and summarise(rows)["mean_create_user_ms"] == 375


def test_a_call_that_fails_is_a_row_with_its_error_and_where_it_was():
    rows = rally_load.rows(report(
        call(100.0, 1.0, [("create_user", 0.5, 1.0, {"failed": True})], ["Gone", "no way", "..."]),
        call(102.0, 0.5, [], ["Refused", "port 5000", "..."])))
    assert rows.ok.tolist() == [False, True, False, False, False]
    assert rows.error.tolist() == ["Gone: no way", "", "Gone: no way", *["Refused: port 5000"] * 2]
    assert rows.step.tolist() == ["", "authenticate", "create_user", "", "authenticate"]


def test_no_calls_are_no_rows():
    assert rally_load.rows(report()).empty and rally_load.rows({"tasks": []}).empty


def test_rally_is_given_a_user_so_that_it_makes_none(tmp_path):
    given = rally_load.files("/srv/a lab/rally", "env PYTHONPATH=/p python3 -S", CREDENTIALS,
                             rally_load.task("create_user", 5, 20))
    cloud = json.loads(given["spec.json"])["existing@openstack"]
    assert cloud["users"] == [cloud["admin"]] and cloud["admin"]["project_name"] == "lab"
    assert json.loads(given["task.json"]) == {"KeystoneBasic.create_user": [
        {"args": {}, "runner": {"type": "constant", "concurrency": 5, "times": 20}}]}
    assert "secret" not in "".join(given[name] for name in given if name != "spec.json")
    script = tmp_path / "run.sh"
    script.write_text(given["run.sh"])
    assert subprocess.run(["sh", "-n", script]).returncode == 0
    assert "cd '/srv/a lab/rally'" in given["run.sh"]


@pytest.mark.parametrize("change, key", [
    ({"scenario": "delete_user"}, "scenario"), ({"times": 4}, "times"), ({"concurrency": 0}, "times")])
def test_what_rally_cannot_be_asked(change, key):
    target = SimpleNamespace(protocol="keystone", credentials=CREDENTIALS)
    with pytest.raises(InputError) as error:
        rally(None, target, **{"scenario": "create_user", "concurrency": 5, "times": 20,
                               "seconds_at_most": 9, **change})
    assert error.value.key == key


def test_every_package_is_pinned():
    lines = [line for line in PACKAGES.pins.read_text().splitlines() if not line.startswith(("#", " "))]
    assert all("==" in line for line in lines)
    assert set(PACKAGES.requirements) <= {line.split()[0] for line in lines}
