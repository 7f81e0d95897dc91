"""Machines of a fleet, for tests: foreign hosts that bring up labs of their own, and a checkout of one tiny study on
each, whose points note that they were measured."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from foreign import USER

import labbook

HERE = Path(__file__).parent
BOOK = f"/home/{USER}/book"
LIBRARY = Path(labbook.__file__).parents[1]
CLAIM = {"section": "sleep", "source": "table 1", "paper": {"value": 2.0, "unit": "times"}, "experiment": "sleeps",
         "metric": "mean_ms", "id": "longer", "statement": "a long sleep takes longer",
         "rule": {"name": "greater", "of": {"long": True}, "than": {"long": False}, "margin": 1.5}}
NOTEBOOK = '''
import os, pathlib, socket, time
from labbook.study import Study

root = pathlib.Path(os.environ["LABBOOK_ROOT"])
study = Study("tiny", environment)
ceilings = study.experiment("ceilings", vary={"clients": [1]})
sleeps = study.experiment("sleeps", setup={"long": [True, False]}, vary={"size": [1, 2]}, repeats=repeats)
for experiment in (ceilings, sleeps):
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            with open(root / "measured.log", "a") as log:
                print(point.label, file=log)
            time.sleep(float((root / "slow").read_text()) if (root / "slow").exists() else 0)
            if (root / "turns").exists():       # of a loop, which keeps a core busy
                attempt.lab.host("h1").run(f"python3 -c 'for _ in range({(root / 'turns').read_text()}): pass'")
            seconds = 0.2 if point.params.get("long") else 0.1     # as set: how long it took is the machine's affair
            name = attempt.lab.host("h1").run("hostname").stdout.split()[0]
            attempt.record([{"started_s": 0, "seconds": seconds, "ok": True}], metrics={"on": socket.gethostname()})
study.complete()
print(study.verdicts("sleep"))
'''

# The same claim, of a null server and its clients in each machine's lab: eight of them wait for each other, one does not.
SERVED = '''
import os, pathlib
from labbook.study import Study
from labbook.systems.null.server import NullServer
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.load import keyvalue

study = Study("tiny", environment)
sleeps = study.experiment("sleeps", setup={"long": [True, False]}, vary={"size": [200]}, repeats=repeats)
for point in sleeps.remaining():
    with study.attempt(point) as attempt:
        with open(pathlib.Path(os.environ["LABBOOK_ROOT"]) / "measured.log", "a") as log:
            print(point.label, file=log)
        null = attempt.setup(lambda lab: NullServer(lab.host("h1")).up())
        load = keyvalue(Crew.of(attempt.lab), null, op="read", clients=8 if point.long else 1, requests=point.size,
                        rows=3, value_bytes=100, warmup_requests=5, seed=1, seconds_at_most=20)
        attempt.record(load.rows, metrics=load.metrics, facts=null.facts())
study.complete()
print(study.verdicts("sleep"))
'''


def lent() -> list[str]:
    """Folders of this machine with its Python and the library."""
    environment = Path(sys.prefix)
    python = Path(sys.executable).resolve().parents[1]
    return [str(path) for path in dict.fromkeys((environment, LIBRARY, python)) if not path.is_relative_to("/usr")]


def write_book(root: Path, repeats=2, notebook=NOTEBOOK) -> Path:
    """A checkout with one study in it."""
    paper = root / "data/papers/tiny"
    for folder in (paper, root / "notebooks", root / "environments"):
        folder.mkdir(parents=True)
    (root / "_toc.yml").touch()
    code = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [{**code, "id": "p", "metadata": {"tags": ["parameters"]},
              "source": f'environment = "environments/local.yml"\nrepeats = {repeats}\n'},
             {**code, "id": "c", "metadata": {}, "source": notebook}]
    (root / "notebooks/tiny.ipynb").write_text(json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    (paper / "claims.yml").write_text(yaml.safe_dump([CLAIM]))
    (paper / "lab.yml").write_text("sites: [a]\nhosts: {h1: {site: a, role: db}, c1: {site: a, role: client}}\n")
    shutil.copy(HERE.parents[1] / "environments/local.yml", root / "environments")
    return root


def install(place, name: str, book: Path) -> None:
    """Put a checkout with this Python on a machine."""
    for folder in lent():       # on the way there may be the home of a user whom others cannot look into
        for parent in Path(folder).parents:
            place.inside(name, f"chmod o+x {parent}", check=False)
    packed = subprocess.run(["tar", "-c", "-C", book, "."], capture_output=True, check=True).stdout
    unpack = [*place._enter(name), "runuser", "-u", USER, "--", "sh", "-c",
              f"mkdir {BOOK} && tar -x -C {BOOK} && ln -s {sys.prefix} {BOOK}/.venv"]
    subprocess.run(unpack, input=packed, check=True)


def write_fleet(place, path: Path, names=None, **more) -> Path:
    """The fleet file of all machines, or of those named, and beside it the key and the known hosts."""
    key, known = path.parent / "fleet_key", path.parent / "fleet_known_hosts"
    key.write_text(place.keys["private"])
    key.chmod(0o600)
    known.write_text("".join(f"{place.address(name)} {public}\n" for name, public in place.keys["hosts"].items()))
    path.write_text(yaml.safe_dump({
        "user": USER, "key": str(key), "known_hosts": str(known), "checkout": BOOK,
        "machines": {name: {"address": place.address(name)} for name in names or place.names}, **more}))
    return path


class Driver:
    """`labbook run --fleet` of a checkout here, as a process. place: the folder of the records that come home."""

    def __init__(self, root: Path, fleet: Path, place="fleet-fleet"):
        self.root, self.fleet, self.place, self.log = root, fleet, place, root / "output.log"

    def start(self, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LABBOOK_")}
        return subprocess.Popen(
            [sys.executable, "-m", "labbook.cli", "run", "tiny", *(words or ("--fleet", str(self.fleet)))], cwd=self.root,
            env={**environment, "LABBOOK_ROOT": str(self.root), "LABBOOK_SHARE_CORES": "1"}, stdin=subprocess.DEVNULL,
            stdout=open(self.log, "a"), stderr=subprocess.STDOUT)

    def output(self) -> str:
        return self.log.read_text()

    def records(self, experiment="sleeps") -> list[Path]:
        found = self.root.glob(f"data/records/{self.place}/tiny/{experiment}/[!.]*.parquet")
        return sorted(path for path in found if ".series." not in path.name)


def measured(place, name: str) -> list[str]:
    """Labels of the points that a machine began to measure."""
    return place.inside(name, f"cat {BOOK}/measured.log 2>/dev/null || true").splitlines()


def left(place, name: str) -> list[str]:
    """What of a fleet or its labs is on a machine: processes, and labs."""
    processes = place.inside(name, "ps -eo args= | grep -E '[l]abbook.pipeline|[i]pyparallel' || true").splitlines()
    return processes + place.inside(name, "ls /run/labbook 2>/dev/null || true").split()
