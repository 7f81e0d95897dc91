"""Claims have the numbers that the paper prints, and the needs of what it explains."""

import pandas as pd

from labbook import paths
from labbook.claims import claims


def test_the_elasticity_papers_minute_is_that_of_its_sleeps():
    printed = pd.read_csv(paths.papers("cassandra_elasticity") / "printed.csv").set_index("what")["value"]
    known = {claim["id"]: claim for claim in claims.load("cassandra_elasticity")}
    assert printed["sleeps"] * printed["sleep"] == printed["least_join"]
    for version in ("old", "new"):
        claim = known[f"no-join-below-60-{version}"]
        assert claim["rule"]["low"] == claim["paper"]["low"] == printed["least_join"]
    assert known["waits-are-two-delays-old"]["paper"]["value"] == printed["least_join"]
    assert known["smaller-read-ahead-helps"]["rule"]["of"] == {"read_ahead_kb": printed["read_ahead_default"]}


def test_what_the_elasticity_paper_explains_by_seeks_needs_a_disk_that_seeks():
    needs = {claim["id"]: {need["metric"] for need in claim.get("needs", ())}
             for claim in claims.load("cassandra_elasticity")}
    for name in ("scheduler-changes-join", "larger-read-ahead-no-help", "smaller-read-ahead-helps",
                 "reads-slow-the-stream"):
        assert "seek_ratio" in needs[name], name
    for name in ("reads-cut-the-stream", "reads-shorten-the-stretches", "range-proportional-none",
                 "reads-lengthen-over-none", "reads-lengthen-over-writes", "range-reads-lengthen"):
        assert not needs[name], name       # counted or observed on any disk
