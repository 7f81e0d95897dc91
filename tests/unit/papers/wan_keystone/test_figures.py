import pandas as pd
import pytest

from labbook import figures
from labbook.figures.canvas import NOT_MEASURED
from labbook.papers.wan_keystone.figures import improvement, over_real_sites, saved, steps


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {list: List, create: Create, segments 1: one, segments 2: two,\n"
                     "  'cache true': cached, weight 2: heavy}\n")
    figures.use_names(paper)


def summary(save=0.1, rtts=(0, 100, 500), repeats=3):
    """Two segments save `save` of the time of creating, half of that of listing."""
    return pd.DataFrame([
        dict(segments=segments, rtt_ms=rtt, scenario=scenario, repeat=repeat,
             mean_ms=(100 + rtt) * repeat * (1 - save * share * (segments == 2)))
        for repeat in range(1, repeats + 1) for segments in (1, 2) for rtt in rtts
        for scenario, share in (("create", 1), ("list", 0.5))])


PRINTED = pd.DataFrame([("create", 500, 12), ("list", 500, 8)],
                       columns=["scenario", "rtt_ms", "saved_percent"])
SAVING = {"x": "rtt_ms", "x_label": "round trip, ms", "hue": "scenario"}


def test_what_is_saved_is_paired_by_repeat_and_stands_beside_what_is_printed():
    picture = improvement(summary(), printed=PRINTED, **SAVING)
    assert picture.panels[0].alt == (
        "Line chart: time saved over round trip. Create: 10.0 % at 0 ms, 10.0 % at 100 ms, "
        "10.0 % at 500 ms; List: 5.00 % at 0 ms, 5.00 % at 100 ms, 5.00 % at 500 ms."
        " In the paper: Create: 12 % at 500 ms; List: 8 % at 500 ms.")
    lost = improvement(summary(save=-0.1), **SAVING).panels[0].alt
    assert "Create: -10.0 % at 0 ms" in lost and "paper" not in lost


def test_a_repeat_without_one_of_the_arms_saves_nothing_and_a_limited_arm_limits_the_pair():
    found = summary().assign(client_limited=0.0)
    found = found[~((found.repeat == 3) & (found.segments == 2))]
    found.loc[(found.rtt_ms == 0) & (found.segments == 1), "client_limited"] = 1.0
    pairs = saved(found, ["scenario", "rtt_ms"], ({"segments": 1}, {"segments": 2}), "mean_ms")
    assert sorted(pairs["repeat"].unique()) == [1, 2]
    assert (pairs[pairs.rtt_ms == 0].client_limited == 1).all()
    assert (pairs[pairs.rtt_ms > 0].client_limited == 0).all()
    only = found[found.segments == 1]
    assert improvement(only, **SAVING) is NOT_MEASURED
    assert improvement(found.iloc[:0], **SAVING) is NOT_MEASURED


def test_points_of_other_settings_are_a_repeat_together():
    """Two numbers of clients made the page fail, after all had been measured."""
    several = pd.concat([summary().assign(clients=1), summary(save=0.3).assign(clients=5)])
    pairs = saved(several, ["scenario", "rtt_ms"], ({"segments": 1}, {"segments": 2}), "mean_ms")
    assert len(pairs) == 2 * 3 * 3 and (pairs.points == 2).all()
    assert pairs[pairs.scenario == "create"].saved.round(6).eq(20).all()
    assert "a repeat is the mean of its points" in improvement(several, **SAVING).caption
    assert "mean of its points" not in improvement(summary(), **SAVING).caption


def test_repeats_of_two_machines_are_not_paired():
    there = summary(save=0.3).assign(machine="there", run="published")
    both = pd.concat([summary().assign(machine="here", run="published"), there[there.segments == 2]])
    pairs = saved(both, ["scenario", "rtt_ms"], ({"segments": 1}, {"segments": 2}), "mean_ms")
    assert set(pairs.machine) == {"here"} and pairs[pairs.scenario == "create"].saved.round(6).eq(10).all()


def test_the_steps_of_a_scenario_are_rows_of_their_own():
    found = summary(repeats=1).assign(mean_authenticate_ms=2.0, mean_list_users_ms=3.0)
    rows = steps(found, "list")
    assert set(rows["step"]) == {"authenticate", "list_users"} and len(rows) == 2 * 2 * 3
    assert rows[rows["step"] == "authenticate"]["step_ms"].tolist() == [2.0] * 6


def test_nothing_measured_has_no_steps():
    empty = pd.DataFrame(columns=["rtt_ms", "segments", "scenario", "repeat"])
    assert figures.line_chart(steps(empty, "list"), x="rtt_ms", hue="step", col="segments", metric="step_ms",
                        x_label="round trip, ms", label="time, ms") is NOT_MEASURED


def test_a_link_with_a_delay_of_its_own_has_the_round_trip_that_was_measured():
    """Two real sites were shown as no WAN, and their calls in no figure."""
    shown = pd.DataFrame({"rtt_ms": [0, 0, 0, 100], "wan_rtt_ms": [180.4, 181.8, 0.1, 100.2], "mean_ms": [1.0] * 4})
    assert over_real_sites(shown).rtt_ms.tolist() == [181, 181, 0, 100]
    assert over_real_sites(pd.DataFrame()).empty


def test_steps_say_where_their_points_are_from():
    shown = summary().assign(mean_authenticate_ms=1.0, run="published", machine="m", client_limited=1.0)
    rows = steps(shown, "create")
    assert set(rows.run) == {"published"} and set(rows.machine) == {"m"} and rows.client_limited.all()
