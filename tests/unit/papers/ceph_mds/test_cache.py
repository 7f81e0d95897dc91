"""Cached and migrated metadata, from made-up looks at metadata servers."""

import math

import pandas as pd
import pytest

from labbook.papers.ceph_mds.cache import (
    cache_metrics,
    counter_growth,
    figure_lists,
    migrating_over_quiet,
    migrations,
    of_both_orders,
    request_metrics,
    shared_out,
)

FILES = 1000
PHASES = pd.DataFrame([
    {"phase": "sequential_create", "from_s": 100.0, "to_s": 110.0, "operations": FILES},
    {"phase": "sequential_stat", "from_s": 110.0, "to_s": 112.0, "operations": FILES},
    {"phase": "sequential_delete", "from_s": 112.0, "to_s": 120.0, "operations": FILES}])


def look(t_s, daemon, inodes, exported=0, **more):
    return {"t_s": t_s, "daemon": daemon, "rank": {"a": 0, "b": 1}[daemon], "inodes": inodes, "dirs": 1,
            "exported_inodes": exported, "exported": int(exported > 0), "requests": 0, "forward": 0, "owned": [], **more}


def run(moved=950, at_s=114.0, directories=8):
    """a caches what is made, and gives nearly all of it to b at once."""
    rows = []
    for half in range(200, 242):
        t_s = half / 2
        made = FILES * min(1.0, max(0.0, (t_s - 100) / 10))
        gone = moved if t_s >= at_s else 0
        rows += [look(t_s, "a", made - gone + 10, gone, dirs=9 if not gone else 1, requests=2 * made),
                 look(t_s + 0.1, "b", 5 + gone, dirs=1 + directories * (gone > 0))]
    return pd.DataFrame(rows)


def test_a_counter_is_interpolated_between_looks():
    seen = pd.DataFrame([look(t, "a", 0, requests=10 * t) for t in (0.0, 1.0, 2.0)]
                        + [look(t, "b", 0, requests=100) for t in (0.0, 2.0)])
    assert counter_growth(seen, "requests", 0.5, 1.5) == pytest.approx(10)
    assert math.isnan(counter_growth(seen.iloc[:0], "requests", 0, 1))


def test_a_migration_has_its_two_ends_and_its_size():
    one, = migrations(run()).to_dict("records")
    assert (one["source"], one["target"], one["inodes"], one["directories"]) == ("a", "b", 950, 8)
    assert (one["from_s"], one["to_s"]) == (113.5, 114.0)
    assert one["left"] == pytest.approx(60 / 1010)


def test_looks_that_follow_one_another_are_one_migration_and_others_are_two():
    given = [0, 0, 10, 30, 30, 30, 30, 50, 50]
    seen = pd.DataFrame([look(i / 2, "a", 100 - n, n) for i, n in enumerate(given)]
                        + [look(i / 2, "b", n) for i, n in enumerate(given)])
    assert list(migrations(seen)["inodes"]) == [30, 20]


def test_what_the_source_still_caches_is_read_right_after_a_migration():
    seen = run()
    gone = (seen["daemon"] == "a") & (seen["t_s"] > 114.6)
    seen.loc[gone, "inodes"] = 0
    assert migrations(seen)["left"].iloc[0] == pytest.approx(60 / 1010)


@pytest.mark.parametrize("trees, each", [(1, 8), (4, 2), (8, 1)])
def test_directories_that_move_as_one_tree_differ_from_those_that_move_one_by_one(trees, each):
    seen = run()
    seen.loc[seen["exported"] > 0, "exported"] = trees
    one, = migrations(seen).to_dict("records")
    assert (one["trees"], one["directories"]) == (trees, 8)
    assert cache_metrics(seen, PHASES)["directories_a_tree"] == each


def test_where_all_directories_are_worked_in_none_is_untouched():
    found = cache_metrics(run(), PHASES.assign(phase=PHASES["phase"].str.replace("sequential", "random")))
    assert math.isnan(found["directories_a_tree"]) and found["most_directories_at_once"] == 8


def test_a_server_that_starts_anew_counts_from_zero_and_gave_nothing():
    seen = pd.DataFrame([look(i / 2, "a", 10, n) for i, n in enumerate([40, 40, 0, 0])]
                        + [look(i / 2, "b", 10) for i in range(4)])
    assert not len(migrations(seen))


def test_figure_five_in_numbers():
    found = cache_metrics(run(), PHASES)
    assert found["one_has_after_create"] == pytest.approx(1010 / 1015)
    assert found["moved_creating"] == found["moved_reading"] == 0
    assert found["moved_deleting"] == found["moved_at_once"] == pytest.approx(0.95)
    assert found["most_directories_at_once"] == 8 and found["migrations"] == 1
    assert found["left_after_move"] < 0.1 and found["shared_out"] == 0


def test_shares_are_of_the_files_that_there_were():
    """Phases that go on for long make more files, each half of a benchmark as many as it comes to."""
    seen = run()
    second = PHASES.assign(phase=PHASES["phase"].str.replace("sequential", "random"), operations=10 * FILES,
                           from_s=PHASES["from_s"] - 60, to_s=PHASES["to_s"] - 60)
    found = cache_metrics(seen, pd.concat([second, PHASES]))
    assert found["moved_deleting"] == pytest.approx(0.95 / 2) and found["moved_at_once"] == pytest.approx(0.95)
    assert cache_metrics(seen, PHASES.assign(operations=2 * FILES))["moved_deleting"] == pytest.approx(0.475)


def test_without_a_migration_there_is_none_to_tell_of():
    found = cache_metrics(run(moved=0), PHASES)
    assert found["moved_deleting"] == found["moved_at_once"] == found["migrations"] == 0
    assert math.isnan(found["left_after_move"])


@pytest.mark.parametrize("owned, found", [
    ([["/x#0*"], ["/x#0*"]], 1),
    ([["/", "/x#00*", "/y#1*"], ["/x#00*", "/y#1*"], []], 2),
    ([["/x#0*", "/x#1*"], ["/x#0*", "/x#1*"]], 0),      # the whole, in parts
    ([["/x#0*"], ["/x#0*", "/x#1*"], ["/x#1*"]], 0),    # on its way
    ([["/x"], ["/x"]], 0)])
def test_a_directory_that_one_has_a_part_of_is_shared_out(owned, found):
    rows = [look(float(i), "a", 0, owned=paths) for i, paths in enumerate(owned)]
    rows += [look(float(i), "b", 0, owned=["/x"]) for i in range(3)]
    assert shared_out(pd.DataFrame(rows)) == found


def test_requests_for_each_operation_of_a_phase():
    seen = run()
    found = request_metrics(seen, PHASES)
    assert found["sequential_create_asked"] == pytest.approx(2) and found["sequential_create_forwarded"] == 0
    sent_on = request_metrics(seen.assign(forward=seen["requests"] // 2), PHASES)
    assert sent_on["sequential_create_asked"] == pytest.approx(1, abs=0.01)
    assert sent_on["sequential_create_forwarded"] == pytest.approx(1, abs=0.01)
    assert found["sequential_create_cached"] == 0
    assert found["sequential_stat_asked"] == 0 and found["sequential_stat_cached"] == 1


def test_rates_of_both_orders_together():
    found = of_both_orders({"sequential_create_per_s": 100.0, "random_create_per_s": 300.0,
                         "sequential_stat_per_s": math.nan, "random_stat_per_s": 50.0,
                         "sequential_delete_per_s": math.nan, "random_delete_per_s": math.nan})
    assert found["create_per_s"] == pytest.approx(150) and found["create_random_over_sequential"] == 3
    assert all(math.isnan(found[f"{op}_per_s"]) for op in ("stat", "delete"))


def test_rates_of_a_benchmark_without_orders_are_left_as_they_are():
    measured = {"create_per_s": 7.0, "stat_per_s": 5.0, "delete_per_s": 3.0, "mkdir_per_s": 2.0}
    assert measured | of_both_orders(measured) == measured


def test_operations_in_a_migration_are_compared_with_the_others():
    rows = pd.DataFrame([{"phase": "sequential_delete", "started_s": t, "seconds": s} for t, s in
                         ((112.0, 0.1), (113.4, 0.9), (113.6, 0.3), (115.0, 0.1))])
    assert migrating_over_quiet(rows, run()) == pytest.approx(0.3 / (1.1 / 3))      # the one of 0.9 s began before it
    slow = rows.assign(phase="random_delete", seconds=10 * rows["seconds"])     # in any case, and oftener in it
    often = pd.concat([rows, slow, slow[slow["started_s"] == 113.6]])
    assert migrating_over_quiet(often, run()) == pytest.approx(0.3 / (1.1 / 3))
    assert math.isnan(migrating_over_quiet(rows, run(moved=0)))


@pytest.mark.parametrize("most", [20, 30, 42, 60])      # every 5th look, every 3rd, every 2nd
def test_what_a_figure_needs_are_short_lists(most):
    found = figure_lists(run(), PHASES, most=most)
    assert len(found["cached_t_s"]) == len(found["cached_rank"]) == len(found["cached_inodes"]) <= most + 2
    assert found["cached_rank"].count(0) == found["cached_rank"].count(1)
    assert found["phase_from_s"] == [0, 10, 12] and found["phase_to_s"][-1] == 20
    assert found["move_t_s"] == [14.0] and found["move_inodes"] == [950]


def test_the_balancers_rounds_a_second_apart_are_migrations_of_their_own():
    """They were one of five times the inodes."""
    looks = [(100 + i / 4, 100 * sum(at <= 100 + i / 4 for at in (102.1, 103.1, 104.1))) for i in range(40)]
    seen = pd.DataFrame([{"t_s": t_s, "daemon": "a", "rank": 0, "inodes": 1000 - moved, "dirs": 10, "exported": moved / 100,
                          "exported_inodes": moved, "owned": []} for t_s, moved in looks]
                        + [{"t_s": t_s, "daemon": "b", "rank": 1, "inodes": moved, "dirs": 1, "exported": 0,
                            "exported_inodes": 0, "owned": []} for t_s, moved in looks])
    assert list(migrations(seen)["inodes"]) == [100, 100, 100]


def test_what_moves_to_and_fro_has_not_moved_twice():
    times = [0.0, 1.0, 2.0, 3.0, 10.0]
    seen = pd.DataFrame([{"t_s": t, "daemon": name, "rank": rank, "inodes": 50, "dirs": 1, "exported": 0, "owned": [],
                          "exported_inodes": 50.0 * (t > after)} for name, rank, after in (("a", 0, 0.5), ("b", 1, 1.5))
                         for t in times])
    phases = pd.DataFrame({"phase": ["sequential_create", "sequential_delete"], "from_s": [0.0, 0.5], "to_s": [0.5, 9.0],
                           "operations": [100, 100]})
    assert cache_metrics(seen, phases)["moved_deleting"] == pytest.approx(0.5, abs=0.05)
