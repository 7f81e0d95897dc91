"""What Rally is given on its host, and what its report says: text in, rows out."""

import json
import shlex

import pandas as pd

ENVIRONMENT, SCENARIO = "labbook", "KeystoneBasic.{}"
# What Rally keeps (its settings, a database, with the administrator's password in both) is below its
# folder and for nobody else to read; `env create` says all it was told, which is for no log.
SCRIPT = """umask 077
cd {home} || exit 1
rally() {{ HOME={home} {python} -m rally.cli.main --config-file rally.conf "$@"; }}
rally db create &&
rally env create --name {environment} --spec spec.json --no-use > /dev/null || exit 1
rally task start task.json --env {environment} --tag {environment} --no-use
rally task report --json --out report.json --uuid "$(rally task list --env {environment} --uuids-only)"
"""


def files(home: str, python: str, credentials: dict, task: dict) -> dict[str, str]:
    """{name: text} of what is in Rally's folder before it starts."""
    return {
        "rally.conf": f"[DEFAULT]\nlog_file = rally.log\n"
                      f"[database]\nconnection = sqlite:///{home}/rally.sqlite\n",
        "spec.json": json.dumps({"existing@openstack": cloud(credentials)}),
        "task.json": json.dumps(task),
        "run.sh": SCRIPT.format(home=shlex.quote(home), python=python, environment=ENVIRONMENT)}


def cloud(credentials: dict) -> dict:
    """Rally's words for a cloud that is there.

    The administrator is named as a user too: else Rally makes users of its own, whose first logins
    all come at once and end in deadlocks where several databases take their writes.
    """
    who = {"username": credentials["username"], "password": credentials["password"],
           "project_name": credentials["project"], "user_domain_name": credentials["domain"],
           "project_domain_name": credentials["domain"]}
    return {"auth_url": credentials["auth_url"], "admin": who, "users": [who]}


def task(scenario: str, concurrency: int, times: int) -> dict:
    """One task of one scenario: closed loops, `times` calls in all."""
    runner = {"type": "constant", "concurrency": concurrency, "times": times}
    return {SCENARIO.format(scenario): [{"args": {}, "runner": runner}]}


def rows(report: dict) -> pd.DataFrame:
    """call, step, started_s (by the host's clock, since the epoch), seconds, ok, error: a row a
    call with the step "", and one a step of it."""
    found = []
    for number, call in enumerate(_calls(report)):
        error = ": ".join(call["error"][:2]) if call["error"] else ""
        found.append((number, "", call["timestamp"], call["duration"], error))
        found += [(number, *step, error if failed else "") for *step, failed in _steps(call)]
    rows = pd.DataFrame(found, columns=["call", "step", "started_s", "seconds", "error"])
    return rows.assign(ok=rows.error == "")


def _steps(call):
    """(step, started, seconds, whether it failed) of each of Rally's atomic actions, and of what
    came before the first: the client finds its way and authenticates, as no action of its own."""
    actions, began = call["atomic_actions"], call["timestamp"]
    there = actions[0]["started_at"] if actions else began + call["duration"]
    yield "authenticate", began, there - began, not actions
    for action in actions:
        yield (action["name"].rpartition(".")[2], action["started_at"],
               action["finished_at"] - action["started_at"], bool(action.get("failed")))


def _calls(report) -> list[dict]:
    """All iterations, by their start."""
    calls = [call for task in report["tasks"] for subtask in task["subtasks"]
             for workload in subtask["workloads"] for call in workload["data"]]
    return sorted(calls, key=lambda call: call["timestamp"])
