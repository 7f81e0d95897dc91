"""A short run of `benchmarks/kills.py`: runs of a study and helpers are killed, and nothing is left."""

import json
import subprocess
import sys

from checkout_copy import CHECKOUT


def test_a_short_run_kills_and_finds_nothing_left(tmp_path):
    command = [sys.executable, CHECKOUT / "benchmarks/kills.py", "--short", "--folder", tmp_path / "book",
               "--out", tmp_path / "kills.jsonl"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    kills = [json.loads(line) for line in (tmp_path / "kills.jsonl").read_text().splitlines()]
    assert [kill["who"] for kill in kills] == ["driver"] * 2 + ["helper"] * 2
    assert all(kill["hit"] and not kill["left"] for kill in kills), kills
    again = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert again.returncode == 0 and again.stdout == done.stdout[done.stdout.index("2 kills"):]
