"""Points that a study's page links: which, and how."""

from labbook.pipeline.book import points
from labbook.pipeline.executing import pages


def meta(key, series=True, repeat=1, paired=None, **setup):
    return {"key": key, "setup": setup, "vary": {}, "repeat": repeat, "series": {"hosts": "d"} if series else {},
            **({"paired": paired} if paired else {})}


def claim(headline=True, experiment="calls", **rule):
    return {"headline": headline, "experiment": experiment, "rule": rule}


def keys(entries, metas):
    return [one["key"] for one in points.chosen(entries, {"calls": metas})]


def test_each_side_of_a_headline_claim_has_its_first_point():
    metas = [meta("a1", store="x", clients=1), meta("a2", store="x", clients=1, repeat=2), meta("b1", store="y", clients=1),
             meta("c1", store="x", clients=9)]
    rule = {"of": {"store": "x"}, "than": {"store": "y"}, "where": {"clients": 1, "elsewhere": 3}}
    assert keys([claim(**rule)], metas) == ["a1", "b1"]
    assert keys([claim(**rule), claim(where={"clients": {"at_least": 9}})], metas) == ["a1", "b1", "c1"]
    assert keys([claim(headline=False, **rule), claim(experiment="other")], metas) == []


def test_a_pair_is_one_point_and_points_without_series_are_none():
    pair = meta("p", paired={"store": ["x", "y"]})
    assert keys([claim(of={"store": "x"}, than={"store": "y"})], [meta("old", series=False), pair]) == ["p"]


def test_there_are_not_too_many():
    metas = [meta(str(number), clients=number) for number in range(20)]
    assert len(keys([claim(where={"clients": number}) for number in range(20)], metas)) == points.MOST


def test_links_lead_to_the_pages_by_their_titles():
    assert points.links("cms", {}) == ""
    html = points.links("cms", {"calls-ab.html": b"<html><head><title>calls: a &lt; b</title>"})
    assert '<a href="../_static/points/cms/calls-ab.html">calls: a &lt; b</a>' in html


def test_published_and_failed_runs_have_none():
    assert points.files("cms", {"state": pages.OK, "published": True}) == {} == points.files("cms", {"state": pages.FAILED})
