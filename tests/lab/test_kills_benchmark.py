"""A short run of `benchmarks/kills.py`: runs of a study and helpers are killed, and one command later
nothing is left, lost or measured twice. Other tests' labs of the same time are left out by their owners.
"""

import json
import subprocess
import sys
from argparse import Namespace
from collections import Counter

from checkout_copy import CHECKOUT

sys.path.append(str(CHECKOUT / "benchmarks"))

import kills as benchmark  # noqa: E402
from killing.studies import PHASES, STUDIES  # noqa: E402


def test_a_short_run_kills_and_leaves_and_loses_nothing(tmp_path):
    command = [sys.executable, CHECKOUT / "benchmarks/kills.py", "--short", "--folder", tmp_path / "book",
               "--out", tmp_path / "kills.jsonl"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost: 0 of 4" in done.stdout and "twice: 0 of 4" in done.stdout, done.stdout
    kills = [json.loads(line) for line in (tmp_path / "kills.jsonl").read_text().splitlines()]
    assert Counter(kill["who"] for kill in kills) == {"driver": 2, "helper": 2}
    for kill in kills:
        assert kill["hit"] and not kill["left"], kill
    again = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert again.returncode == 0 and again.stdout == done.stdout[done.stdout.index("2 kills"):]


def drawn(seed=1, kills=100, helper_kills=20):
    return benchmark.plan(Namespace(seed=seed, kills=kills, helper_kills=helper_kills, studies=list(STUDIES),
                                    short=False))


def test_the_draw_has_each_study_and_phase_as_often_as_planned():
    plan = drawn()
    assert len({kill["id"] for kill in plan}) == len(plan) == 120
    for name, study in STUDIES.items():
        mine = [kill for kill in plan if kill["study"] == name]
        assert Counter(kill["phase"] for kill in mine if kill["who"] == "driver") == study.kills
        assert Counter(kill["phase"] for kill in mine if kill["who"] == "helper") == {"make": 2, "unmake": 2}


def test_a_draw_that_is_stopped_early_has_each_study_and_phase_once():
    cells = [(name, phase) for name, study in STUDIES.items() for phase in study.kills]
    first = [kill for kill in drawn() if kill["who"] == "driver"][:len(cells)]
    assert sorted((kill["study"], kill["phase"]) for kill in first) == sorted(cells)
    assert {phase for _, phase in cells} == set(PHASES)


def test_a_seed_always_draws_the_same_and_another_one_does_not():
    assert drawn() == drawn() != drawn(seed=2)


class NoBook:
    def finished(self):
        return {}


def test_a_kill_that_hit_nothing_is_tried_again_and_counts_once(tmp_path):
    out = tmp_path / "kills.jsonl"
    row = {"id": "1-driver-x-up-0", "who": "driver", "study": "x", "good_code": True, "seconds": 1}
    out.write_text(json.dumps({**row, "hit": False}) + "\n")
    missed = benchmark.Bench(NoBook(), out)
    assert not missed.has(row["id"]) and benchmark.is_bad(missed.done[0])
    with open(out, "a") as file:
        file.write(json.dumps({**row, "hit": True}) + "\n")
    again = benchmark.Bench(NoBook(), out)
    assert again.has(row["id"]) and len(again.done) == 1 and not benchmark.is_bad(again.done[0])
