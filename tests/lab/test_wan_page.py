"""The page of the WAN study as it is, over a cloud so small and with so few calls that it takes
seconds: a point of each scenario for each arm."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from checkout_copy import copy_checkout
from small_clouds import SMALL

from labbook.lab import Lab
from labbook.study import claims, rules
from labbook.study.record import Records

STUDY, RTT_MS, TIMES = "wan_keystone", 40, 10
SCENARIOS = ("create_user", "create_and_list_users")
NOTHING_ELSE = {f"{name}_repeats": 0 for name in ("bandwidth", "window", "cache", "tool", "kill", "cut")}
TINY = {**SMALL, "rtt_ms": [RTT_MS], "concurrency": 2, "times": TIMES, "warmup_calls": 4,
        "repeats": 1, "ceiling_repeats": 1, **NOTHING_ELSE}
VERDICTS = {rules.REPLICATED, rules.NOT_REPLICATED, rules.TOO_NOISY, rules.NOT_TESTABLE}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_checkout(tmp_path_factory.mktemp("page") / "labbook")


@pytest.fixture(scope="module")
def page(checkout):
    """The checkout once the tiny page has been made in it."""
    run(checkout, TINY)
    return checkout


def run(checkout, parameters, *words):
    given = [word for name, value in parameters.items() for word in ("-p", name, json.dumps(value))]
    environ = {**os.environ, "LABBOOK_ROOT": str(checkout)}
    environ.pop("LABBOOK_RECORDS", None)
    done = subprocess.run([sys.executable, "-m", "labbook.cli", "run", STUDY, *words, *given],
                          cwd=checkout, env=environ, stdin=subprocess.DEVNULL, text=True, timeout=500,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def recorded(checkout, experiment) -> list[dict]:
    found = checkout.glob(f"data/records/*/{STUDY}/{experiment}/[!.]*.parquet")
    return [Records(path.parent).meta(path.stem) for path in found]


def test_each_arm_has_its_points(page):
    found = {(meta["setup"]["segments"], meta["measure"]["scenario"]): meta["summary"]
             for meta in recorded(page, "response")}
    assert len(recorded(page, "response")) == 4 and len(recorded(page, "ceiling")) == 2
    assert set(found) == {(segments, scenario) for segments in (1, 2) for scenario in SCENARIOS}
    for measured in found.values():
        assert (measured["n"], measured["errors"]) == (TIMES, 0)
        assert measured["mean_ms"] > RTT_MS     # a write waits for the other site
        assert measured["wan_bytes_per_call"] > 0
    # Of both scenarios together: on a busy machine what the nodes say meanwhile counts as well.
    one, two = (sum(found[segments, scenario]["wan_bytes_per_call"] for scenario in SCENARIOS)
                for segments in (1, 2))
    assert one > two


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", str(page))
    judged = {one["id"]: one["verdict"] for one in claims.verdicts(STUDY)}
    assert list(judged) == [claim["id"] for claim in claims.load(STUDY)]
    assert set(judged.values()) <= VERDICTS
    assert Lab.sweep() == []


def test_the_parameters_that_the_page_gives_for_two_real_sites(checkout):
    """Without a round trip of our own; nothing is measured."""
    cells = json.loads((checkout / "notebooks" / f"{STUDY}.ipynb").read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    words = shlex.split(re.search(rf"^labbook run {STUDY} (.*)$", text, re.M)[1])
    given = [word for at, word in enumerate(words) if "--environment" not in words[max(0, at - 1):at + 1]]
    assert {"rtt_ms", "more_rtt_ms"} <= set(given)
    run(checkout, {"repeats": 0, "ceiling_repeats": 0, **NOTHING_ELSE}, *given)
