"""Figures over parameters and through time: what is drawn, put in words and left out."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from figure_stand_ins import store_summary

from labbook import figures
from labbook.claims import claims, rules
from labbook.claims.statistics import Interval
from labbook.figures import plots, repeats
from labbook.figures.canvas import NOT_MEASURED, Panel, Picture


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {list: List, create: Create, segments 1: one, segments 2: two,\n"
                     "  'cache true': cached, weight 2: heavy,\n"
                     "  cassandra: Cassandra, mysql: MySQL, read: Read, write: Write}\n")
    figures.use_names(paper)


def summary(save=0.1, rtts=(0, 100, 500), repeats=3):
    """Two segments save `save` of the time of creating, half of that of listing."""
    return pd.DataFrame([
        dict(segments=segments, rtt_ms=rtt, scenario=scenario, repeat=repeat,
             mean_ms=(100 + rtt) * repeat * (1 - save * share * (segments == 2)))
        for repeat in range(1, repeats + 1) for segments in (1, 2) for rtt in rtts
        for scenario, share in (("create", 1), ("list", 0.5))])


OVER = {"x": "rtt_ms", "hue": "segments", "metric": "mean_ms", "x_label": "round trip, ms",
        "label": "mean time of a call, ms"}


def test_a_metric_over_a_parameter_has_its_units_and_the_names_of_its_parameters():
    picture = figures.line_chart(summary(), col="scenario", **OVER)
    assert picture.panels[0].alt == (
        "Line chart, List: mean time of a call over round trip. one: 200 ms at 0 ms, 400 ms at "
        "100 ms, 1,200 ms at 500 ms; two: 190 ms at 0 ms, 380 ms at 100 ms, 1,140 ms at 500 ms.")
    assert picture.caption.startswith("Mean time of a call; line: median of 3 repeats")


def test_panels_stand_in_the_order_of_the_papers_names():
    titles = [p.alt.split(":")[0] for p in figures.line_chart(summary(), col="scenario", **OVER).panels]
    assert titles == ["Line chart, List", "Line chart, Create"]


def test_one_panel_may_stand_for_all_and_be_called_by_a_note():
    picture = figures.line_chart(summary()[lambda s: s.scenario == "list"], note="Listing", **OVER)
    assert [p.alt[:20] for p in picture.panels] == ["Line chart, Listing:"]


def test_points_without_the_metric_are_left_out():
    found = summary()
    found["steps_ms"] = [math.nan if scenario == "create" else 4.0 for scenario in found.scenario]
    picture = figures.line_chart(found, col="scenario", **OVER | {"metric": "steps_ms"})
    assert len(picture.panels) == 1 and "List" in picture.panels[0].alt
    found["steps_ms"] = None
    assert figures.line_chart(found, **OVER | {"metric": "steps_ms"}) is NOT_MEASURED
    assert figures.line_chart(found, **OVER | {"metric": "other"}) is NOT_MEASURED
    assert figures.line_chart(found.iloc[:0], **OVER) is NOT_MEASURED


def test_a_metric_of_nothing_but_zeros_can_be_drawn():
    assert "one: 0 at 0 ms" in figures.line_chart(
        summary().assign(conflicts=0), **OVER | {"metric": "conflicts", "label": "conflicts"}
    ).panels[0].alt


@pytest.mark.parametrize("rtts, ends", [((0, 100, 500), "get_ylim"), ((0, 100), "get_xlim")])
@pytest.mark.parametrize("gained", [(-40, 5), (-40, -5), (0, 5)])
def test_every_value_is_on_its_axis_and_so_is_0(monkeypatch, rtts, ends, gained):
    """Values below 0 were cut off."""
    drawn = []
    monkeypatch.setattr(plots, "panel", lambda figure, alt: drawn.append(figure) or Panel(b"", alt, 1.0))
    figures.line_chart(summary(rtts=rtts).assign(gained=lambda frame: [gained[one % 2] for one in range(len(frame))]),
                       **OVER | {"metric": "gained", "label": "gained, ms"})
    low, high = getattr(drawn[0].axes[0], ends)()
    assert low <= min(0, *gained) and max(0, *gained) <= high
    assert (low == 0) == (min(gained) == 0)


def test_values_of_x_below_0_are_on_the_axis():
    _, axes = plots.axes_over(pd.Series([-20, -10, -5]), "offset, ms", "ms", 1)
    assert axes.get_xlim()[0] < -20 and axes.get_xlim()[1] >= -5


def test_equal_ratios_of_x_may_take_equal_steps():
    _, axes = plots.axes_over(pd.Series([0.25, 1, 10]), "rate, Mbit/s", "ms", 1, log=True)
    assert axes.get_xscale() == "log" and list(axes.get_xticks()) == [0.25, 1, 10]


def test_what_is_saved_is_reported_in_prose():
    text = figures.percent_saved(summary(), "mean_ms", {"segments": 1}, {"segments": 2},
                                 scenario="list", rtt_ms=500)
    assert text == "5.00 % (5.00 to 5.00 in 3 repeats)"
    assert figures.percent_saved(summary(), "mean_ms", {"segments": 1}, {"segments": 3}) == (
        "not measured")


def cut(weight, repeat, as_list=list, outage=3.0, healed=8.0):
    good = [4, 4, 0, 0, 0, 0, 0, 0, 4, 4]
    bad = [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
    return dict(weight=weight, repeat=repeat, bin_s=1.0, ok_per_bin=as_list(good),
                errors_per_bin=as_list(bad), cut_s=2.0, healed_s=healed, outage_s=outage,
                outage_from_s=2.5)


EVENTS = {"cut_s": "WAN cut", "healed_s": "healed", "never_s": "never"}


@pytest.mark.parametrize("as_list", [list, np.array])
def test_a_fault_is_reported_through_its_time(as_list):
    frame = pd.DataFrame([cut(1, 1, as_list), cut(2, 1, as_list, healed=math.nan)])
    picture = figures.timeline(frame, by=["weight"], events=EVENTS)
    assert [p.alt for p in picture.panels] == [
        "Chart through time, 1: calls a second. WAN cut at 2.00 s; healed at 8.00 s; no success "
        "for 3.00 s from 2.50 s; 16 calls came out and 2 failed in 10.0 s.",
        "Chart through time, heavy: calls a second. WAN cut at 2.00 s; no success for 3.00 s "
        "from 2.50 s; 16 calls came out and 2 failed in 10.0 s."]


def test_of_several_repeats_the_middle_one_is_drawn():
    frame = pd.DataFrame([cut(1, i, outage=s, healed=h) for i, (s, h) in
                          enumerate([(9.0, 9.0), (1.0, 1.0), (5.0, 5.0)], 1)])
    picture = figures.timeline(frame, by=["weight"], events=EVENTS)
    assert "healed at 5.00 s" in picture.panels[0].alt
    assert "the repeat with the middle outage" in picture.caption


def test_a_fault_that_was_not_measured_is_reported():
    assert figures.timeline(pd.DataFrame(columns=["weight"]), by=["weight"], events=EVENTS) is NOT_MEASURED
    assert figures.timeline(pd.DataFrame([{"weight": 1, "mean_ms": 3.0}]), by=["weight"],
                            events=EVENTS) is NOT_MEASURED
    without_values = pd.DataFrame([cut(1, 1) | {"ok_per_bin": math.nan}])
    assert figures.timeline(without_values, by=["weight"], events=EVENTS) is NOT_MEASURED


class Measured:
    """What a table asks of an experiment."""

    parameters = ("segments", "rtt_ms", "scenario")

    def __init__(self, frame, claim):
        self.study, self._frame, self._claim = self, frame, claim

    name = "demo"

    def summary(self):
        return self._frame

    def judge(self, name):
        assert name == self._claim["id"]
        found = rules.decide(self._claim, self._frame.to_dict("records"), self.parameters)
        at = found.interval or Interval(None, None, None, None, 0)
        return SimpleNamespace(verdict=found.verdict, repeats_needed=found.repeats_needed, measured=at.value,
                               low=at.low, high=at.high, n=at.n)


def test_a_table_says_how_many_repeats_a_verdict_takes(monkeypatch):
    rule = {"name": "ratio_between", "of": {"segments": 1}, "than": {"segments": 2}, "low": 1.02,
            "high": 1.06, "where": {"scenario": "create", "rtt_ms": {"at_least": 100}}}
    claim = {"id": "saves", "statement": "It saves.", "metric": "mean_ms", "rule": rule}
    monkeypatch.setattr(claims, "load", lambda study: [claim])
    noise = {(2, r): 1 + 0.02 * (r - 2) for r in (1, 2, 3)}
    frame = summary(save=0.04)
    frame["mean_ms"] *= [noise.get(key, 1) for key in zip(frame.segments, frame.repeat)]
    table = figures.repeats_table(Measured(frame, claim), ["saves"])
    assert table.rows == (("It saves.", "1.020 to 1.060", "1.042 (1.021 to 1.063)", "0.021", "3", "30"),)
    for part, cells in ((frame[frame.repeat == 1], ("1.063", "–", "1", "–")),
                        (frame[frame.segments == 1], ("not measured", "–", "0", "–")),
                        (frame.iloc[:0], ("not measured", "–", "0", "–"))):
        assert figures.repeats_table(Measured(part, claim), ["saves"]).rows[0][2:] == cells


def test_a_table_of_repeats_has_the_numbers_of_the_verdict(monkeypatch):
    rule = {"name": "ratio_between", "of": {"segments": 1}, "than": {"segments": 2}, "low": 1.02,
            "high": 1.5, "symmetric": True, "where": {"scenario": "create", "rtt_ms": {"at_least": 100}}}
    claim = {"id": "saves", "statement": "It saves.", "metric": "mean_ms", "rule": rule}
    monkeypatch.setattr(claims, "load", lambda study: [claim])
    once = summary(save=0.04)
    frame = pd.concat([once.assign(repeat=once.repeat + 3 * i, mean_ms=once.mean_ms * (
        (once.segments == 1) * 0.02 * i + 1)) for i in range(3)], ignore_index=True)
    measured = Measured(frame, claim)
    judged = measured.judge("saves")
    row, = figures.repeats_table(measured, ["saves"]).rows
    assert row[2] == f"{judged.measured:.3f} ({judged.low:.3f} to {judged.high:.3f})"
    assert (judged.n, row[4:]) == (9, ("9", "decided"))
    other = once.assign(machine="other")      # its three repeats are not the verdict's
    both = Measured(pd.concat([other, frame.assign(machine="judged")], ignore_index=True), claim)
    both.judge = measured.judge
    assert figures.repeats_table(both, ["saves"]).rows == (row,)
    other = frame.assign(machine="other", mean_ms=frame.mean_ms * (1 + frame.segments * 0.3 * frame.repeat / 9))
    both._frame = pd.concat([other, frame.assign(machine="judged")], ignore_index=True)     # as many on each
    assert figures.repeats_table(both, ["saves"]).rows == (row,)


def test_truths_and_numbers_are_named_with_their_parameter():
    assert figures.name(True, "cache") == figures.name(np.bool_(True), "cache") == "cached"
    assert figures.name(2.0, "segments") == figures.name(np.int64(2), "segments") == "two"
    assert (figures.name(2), figures.name(0.25), figures.name("list", "x")) == ("2", "0.25", "List")


def test_client_limited_points_are_hollow_and_named(monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "draw_repeats", lambda axes, rows, *_: drawn.append(rows))
    picture = figures.time_over_clients(store_summary((1, 10, 100), limited={("mysql", 10)}))
    assert "6 measurements of 36 limited by the clients" in picture.caption
    assert sum(repeats.client_limited(rows).sum() for rows in drawn) == 6
    assert "limited" not in figures.time_over_clients(store_summary()).caption


def test_one_or_two_values_of_x_are_rows_and_no_line():
    picture = figures.line_chart(store_summary((100, 10)), x="clients", hue="store", col="op", metric="mean_ms",
                                 x_label="round trip, ms", label="mean time, ms")
    assert picture.panels[0].alt.startswith("Dot chart, Read: mean time, ms. 10 ms, Cassandra: 40.0; 10 ms, MySQL: 20.0; 100 ms,")
    assert "1 client, " in figures.time_over_clients(store_summary((1,))).panels[0].alt
    noted = figures.line_chart(store_summary((100, 10)), x="clients", hue="store", col="op", metric="mean_ms",
                               x_label="clients", label="mean time, ms", note="flushed")
    assert [p.alt.split(":")[0] for p in noted.panels] == ["Dot chart, Read, flushed", "Dot chart, Write, flushed"]


def test_hollow_points_have_a_face_of_their_own():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    rows = store_summary(limited={("mysql", 10)})
    plots.draw_repeats(axes, rows[rows.store == "mysql"], "clients", "mean_ms", "#D55E00", "s")
    solid, hollow = axes.collections
    assert (len(solid.get_offsets()), len(hollow.get_offsets())) == (6, 6)
    assert solid.get_facecolor().tolist() != hollow.get_facecolor().tolist()


def test_rates_without_a_ceiling_are_shown_alone():
    """With one client alone, a page had failed after all was measured."""
    summary = store_summary()
    picture = figures.rate_over_clients(summary, summary.iloc[:0])
    assert "median" in picture.caption and len(picture.panels) == summary["op"].nunique()


def test_rates_stand_beside_the_ceiling():
    ceiling = store_summary(repeat_times=(0.5,))
    picture = figures.rate_over_clients(store_summary(), ceiling)
    assert "from 70% of it" in picture.caption
    assert "Ceiling of the clients: Cassandra 1,000 to 1,000, MySQL 2,000 to 2,000" in picture.panels[0].alt


def test_dots_stand_beside_one_another_with_the_words_of_paper_yml():
    found = store_summary(counts=(1,), limited={("mysql", 1)})
    picture = figures.dot_chart(found, y="clients", hue="store", col="op")
    assert [p.alt for p in picture.panels] == [
        f"Dot chart, {op}: mean time of a request, ms. 1, Cassandra: 4.00; 1, MySQL: 2.00."
        for op in ("Read", "Write")]
    assert picture.caption == ("Mean time of a request, ms; dots: the repeats; line: median of 3 "
                               "repeats; bar: interval of the median at a level of 75 %. 6 of 12 "
                               "limited by the clients: hollow.")


@pytest.mark.parametrize("draw", [
    figures.time_over_clients, lambda found: figures.rate_over_clients(found, store_summary()),
    lambda found: figures.dot_chart(found, y="clients", hue="store", col="op")])
def test_what_a_profile_leaves_out_is_named_where_it_would_be_drawn(draw):
    left_out = pd.DataFrame(columns=["point", "op", "store", "clients", "repeat"])
    assert draw(left_out) == Picture((), "Not measured in this profile.")
