"""A short run of `benchmarks/kills.py`: runs of a study and helpers are killed, and no point is lost.

It looks at the whole machine, on which other tests have labs at the same time, so what it lists as left
is not judged here. `test_kill` judges that for a lab by its id.
"""

import json
import subprocess
import sys

from checkout_copy import CHECKOUT


def test_a_short_run_kills_and_loses_nothing(tmp_path):
    command = [sys.executable, CHECKOUT / "benchmarks/kills.py", "--short", "--folder", tmp_path / "book",
               "--out", tmp_path / "kills.jsonl"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=400)
    assert "lost: 0 of 4" in done.stdout and "twice: 0 of 4" in done.stdout, done.stdout + done.stderr
    kills = [json.loads(line) for line in (tmp_path / "kills.jsonl").read_text().splitlines()]
    assert [kill["who"] for kill in kills] == ["driver"] * 2 + ["helper"] * 2
    assert all(kill["hit"] for kill in kills), kills
    again = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert again.returncode == done.returncode and again.stdout == done.stdout[done.stdout.index("2 kills"):]
