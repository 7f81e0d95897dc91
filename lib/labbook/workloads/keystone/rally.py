"""The same calls of Keystone by Rally, the tool of the paper's time, in its release of today."""

import json
import shlex
from contextlib import suppress
from pathlib import Path

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab.cache.python_packages import PythonPackages
from labbook.workloads.clients.start import clocks
from labbook.workloads.keystone import rally_text as rally_host
from labbook.workloads.keystone.users import PROTOCOL, SCENARIOS, Load

PACKAGES = PythonPackages("rally", "5.1.1", ("rally==5.1.1", "rally-openstack==4.1.0"),
                          Path(__file__).with_name("rally.txt"))
NAME = "rally"


def rally(crew, target, *, scenario: str, concurrency: int, times: int,
          seconds_at_most: float) -> Load:
    """Let Rally on the crew's first host make `times` calls from `concurrency` threads.

    `target` is as for keystone_users, and so are the rows, but that `client` is 0 and `user` ""
    for all, since Rally does not tell. The only metric is rate_per_s. Rally removes its users when
    the calls are done. SystemFailure when that is not within `seconds_at_most`, or when Rally
    comes to no calls at all. Its packages are fetched when they are needed first.
    """
    _check(target, scenario, concurrency, times)
    host = crew.hosts[0]
    home = host.root / NAME
    offsets, _ = clocks(crew)
    try:
        host.run(f"rm -rf {NAME} && mkdir -m 700 {NAME}")
        for name, text in rally_host.files(
                str(home), PACKAGES.python_on(host), target.credentials,
                rally_host.task(scenario, concurrency, times)).items():
            host.put(text, home / name, 0o600)
        report = _report(host, home, seconds_at_most)
    finally:
        with suppress(LabbookError):  # what went wrong first is what must be told
            host.run(f"rm -rf {NAME}")
    return _load(rally_host.rows(report), host, offsets[0])


def _check(target, scenario, concurrency, times):
    for key, value, allowed in (("protocol", target.protocol, (PROTOCOL,)),
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


def _load(rows, host, offset: float) -> Load:
    if rows.empty:
        raise SystemFailure(f"{host.name}: Rally made no calls")
    began = rows.started_s.min()
    rows = rows.assign(client=0, host=host.name, user="", started_s=rows.started_s - began)
    calls = rows[rows.step == ""]
    seconds = (calls.started_s + calls.seconds).max()
    rows = rows.astype({"client": "int32", "call": "int32", "host": "category", "step": "category"})
    return Load(rows, {"rate_per_s": calls.ok.sum() / seconds}, began - offset)
