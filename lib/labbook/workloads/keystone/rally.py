"""The calls of keystone_users made by Rally, the paper's tool, in its current release."""

import json
import shlex
from contextlib import suppress
from pathlib import Path

import pandas as pd

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab.python_packages import PythonPackages
from labbook.targets import KEYSTONE, IdentityServer
from labbook.workloads.clients.driver import clocks
from labbook.workloads.clients.pace import usual_turn
from labbook.workloads.clients.rows import Load

SCENARIOS = ("create_user", "create_and_list_users")    # of the KeystoneBasic of Rally
PACKAGES = PythonPackages("rally", "5.1.1", ("rally==5.1.1", "rally-openstack==4.1.0"),
                          Path(__file__).with_name("rally.txt"))
NAME = "rally"
ENVIRONMENT, SCENARIO = "labbook", "KeystoneBasic.{}"
# Rally's settings and database, both with the administrator's password, lie in a folder that nobody
# else may read; `env create` prints its input, which must not get into a log.
SCRIPT = """umask 077
cd {home} || exit 1
rally() {{ HOME={home} {python} -m rally.cli.main --config-file rally.conf "$@"; }}
rally db create &&
rally env create --name {environment} --spec spec.json --no-use > /dev/null || exit 1
rally task start task.json --env {environment} --tag {environment} --no-use
rally task report --json --out report.json --uuid "$(rally task list --env {environment} --uuids-only)"
"""


def rally(crew, target: IdentityServer, *, scenario: str, concurrency: int, times: int,
          seconds_at_most: float) -> Load:
    """Let Rally on the crew's first host make `times` calls from `concurrency` threads.

    `target` and the rows are as of keystone_users, except that `client` is 0 and `user` "" in all
    rows, since Rally does not report them. The only metrics are rate_per_s and issued_per_s. Rally
    removes its users after the calls. SystemFailure when it does not end within `seconds_at_most`, or
    makes no calls. Its packages are downloaded on first use.
    """
    _check(target, scenario, concurrency, times)
    host = crew.hosts[0]
    home = host.root / NAME
    offsets, _ = clocks(crew)
    try:
        host.run(f"rm -rf {NAME} && mkdir -m 700 {NAME}")
        for name, text in files(
                str(home), PACKAGES.python_on(host), target.credentials,
                task(scenario, concurrency, times)).items():
            host.put(text, home / name, 0o600)
        report = _report(host, home, seconds_at_most)
    finally:
        with suppress(LabbookError):  # the first error is the one to report
            host.run(f"rm -rf {NAME}")
    return _load(rows(report), host, offsets[0], concurrency)


def _check(target: IdentityServer, scenario, concurrency, times):
    for key, value, allowed in (("protocol", target.protocol, (KEYSTONE,)),
                                ("scenario", scenario, SCENARIOS)):
        if value not in allowed:
            raise InputError(f"{value!r} is not allowed", key=key, allowed=allowed)
    if not 1 <= concurrency <= times:
        raise InputError(f"{times!r} calls of {concurrency!r} clients", key="times",
                         allowed=f"concurrency ({concurrency}) and more")


def _report(host, home, seconds: float) -> dict:
    process = host.start(NAME, shlex.join(("sh", f"{home}/run.sh")), cwd=str(home))
    try:
        host.wait_for(lambda: not process.alive(), "Rally to end", seconds, process, 0.5)
    except BaseException:
        with suppress(LabbookError):
            process.stop()
        raise
    if process.exit_code():
        raise SystemFailure(f"{host.name}: Rally made no report", log=process.log_tail())
    return json.loads(host.get(home / "report.json"))


def _load(rows, host, offset: float, concurrency: int) -> Load:
    if rows.empty:
        raise SystemFailure(f"{host.name}: Rally made no calls")
    began = rows.started_s.min()
    rows = rows.assign(client=0, host=host.name, user="", started_s=rows.started_s - began)
    calls = rows[rows.step == ""]
    seconds = (calls.started_s + calls.seconds).max()
    rows = rows.astype({"client": "int32", "call": "int32", "host": "category", "step": "category"})
    made = {"rate_per_s": calls.ok.sum() / seconds,
            "issued_per_s": [concurrency / usual_turn(calls.seconds)]}    # a thread's calls leave no gap
    return Load(rows, made, began - offset)


def files(home: str, python: str, credentials: dict, task: dict) -> dict[str, str]:
    """{name: text} of the files that Rally starts with."""
    return {
        "rally.conf": f"[DEFAULT]\nlog_file = rally.log\n"
                      f"[database]\nconnection = sqlite:///{home}/rally.sqlite\n",
        "spec.json": json.dumps({"existing@openstack": cloud(credentials)}),
        "task.json": json.dumps(task),
        "run.sh": SCRIPT.format(home=shlex.quote(home), python=python, environment=ENVIRONMENT)}


def cloud(credentials: dict) -> dict:
    """Rally's description of an existing cloud.

    The administrator is its user too: otherwise Rally creates users, whose first logins come all at
    once and end in deadlocks when several databases take writes.
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
    """A row for each call, with the step "", and for each of its steps: call, step, started_s (since
    the epoch, by the host's clock), seconds, ok, error."""
    found = []
    for number, call in enumerate(_calls(report)):
        error = ": ".join(call["error"][:2]) if call["error"] else ""
        found.append((number, "", call["timestamp"], call["duration"], error))
        found += [(number, *step, error if failed else "") for *step, failed in _steps(call)]
    rows = pd.DataFrame(found, columns=["call", "step", "started_s", "seconds", "error"])
    return rows.assign(ok=rows.error == "")


def _steps(call):
    """(step, started, seconds, whether it failed) of each of Rally's atomic actions, and of the time
    before the first one, "authenticate": discovery and login, which Rally counts as no action."""
    actions, began = call["atomic_actions"], call["timestamp"]
    first = actions[0]["started_at"] if actions else began + call["duration"]
    yield "authenticate", began, first - began, not actions
    for action in actions:
        yield (action["name"].rpartition(".")[2], action["started_at"],
               action["finished_at"] - action["started_at"], bool(action.get("failed")))


def _calls(report) -> list[dict]:
    """All iterations, by their start."""
    calls = [call for task in report["tasks"] for subtask in task["subtasks"]
             for workload in subtask["workloads"] for call in workload["data"]]
    return sorted(calls, key=lambda call: call["timestamp"])
