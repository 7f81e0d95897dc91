"""A book with one study whose claims are asked: made-up values in place of servers, each point a line in
a log."""

from study_stand_ins import checkout

CLAIM = {"section": "speed", "source": "table 1", "paper": {"value": 2.0, "unit": "times"}, "metric": "took_ms"}
GREATER = {"name": "greater", "of": {"store": "a"}, "than": {"store": "b"}, "margin": 1.5}
CLAIMS = [
    {**CLAIM, "id": "clear", "statement": "a takes 2 times as long", "experiment": "speed", "headline": True,
     "rule": {**GREATER, "where": {"clients": 1}}},
    {**CLAIM, "id": "noisy", "statement": "with 9 clients, too", "experiment": "speed",
     "rule": {**GREATER, "where": {"clients": 9}}},
    {**CLAIM, "id": "other", "statement": "on disks, too", "experiment": "disks", "rule": GREATER},
    {**CLAIM, "id": "elsewhere", "statement": "with 90 clients, too", "experiment": "speed",
     "rule": {**GREATER, "where": {"clients": {"at_least": 90}}}},
]
LAB = """sites: [lan]
hosts: {server: {site: lan, role: db}}
needs: {minutes: {quick: 1}}
"""
DECLARE = """
import os
from labbook.study import Study

class Lab:
    facts = dict

    def __getattr__(self, name):    # what else is asked of a lab finds nothing
        return list

study = Study("asked", bring_up=lambda *_: Lab())
stores = dict(store=["a", "b"])
ceiling = study.experiment("ceiling", vary=dict(clients=[1, 9]), repeats=1)
speed = study.experiment("speed", setup=stores, vary=dict(clients=[1, 9]), repeats=repeats)
disks = study.experiment("disks", setup=stores, repeats=repeats)
left_out = study.experiment("left_out", setup=stores, repeats=0)

def value(point):
    ratio = 2.0
    if point.params.get("clients") == 9:      # it goes below 1.5 in one of the first six repeats
        ratio = 1.2 if point.repeat == 3 else 2.0
    return 10 * ratio if point.params.get("store") == "a" else 10

for experiment in (ceiling, speed, disks, left_out):
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            attempt.lab
            with open(os.environ["LABBOOK_ROOT"] + "/measured.log", "a") as log:
                print(point.label, file=log)
            attempt.record(metrics={"took_ms": value(point)})
study.complete()
"""
SHOW = """
print("rows", {one.name: len(one.summary()) for one in study.experiments.values()})
print("runs", {one.name: sorted(set(one.summary().get("run", []))) for one in study.experiments.values()})
print({one.id: one.verdict for one in study.verdicts("speed")})
"""
PARAMETERS = 'environment = "environments/local.yml"\nrepeats = 2\n'


def write(book, lab=LAB, claims=CLAIMS):
    """The study in a Book; its root."""
    book.study("asked", DECLARE, SHOW, parameters=PARAMETERS, full="{}\n")
    notebook = (book.root / "notebooks/asked.ipynb").read_text()
    checkout(book.root, "asked", claims)
    book.write("notebooks/asked.ipynb", notebook)
    book.write("data/papers/asked/lab.yml", lab)
    return book.root


def measured(book) -> list[str]:
    """Labels of the points that were measured, in order."""
    file = book.root / "measured.log"
    return file.read_text().splitlines() if file.exists() else []
