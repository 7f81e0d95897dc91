"""Which machine measures what: nothing twice, a repeat on one machine, and what is lost elsewhere."""

import pytest

from labbook.pipeline.fleet.scheduler import Job, Point, Scheduler
from labbook.pipeline.fleet.simulated import simulate


def job(experiment="e", repeat=1, points=2, point_s=10.0, study="s", machines=(), setup_s=5.0):
    """machines: which has measured the first points."""
    each = tuple(Point(f"{study}{experiment}{repeat}p{i}", f"set-up {i}", setup_s, point_s,
                       machines[i] if i < len(machines) else None) for i in range(points))
    return Job(study, experiment, repeat, each)


def scheduler(jobs, machines="ab", own=None, **more):
    made = Scheduler(**more)
    made.add(jobs, own)
    for name in machines:
        made.join(name, f"id-{name}")
    return made


def measure(of, name, count=None):
    """A machine measures the points of its job, the first `count` of them."""
    machine = of.machines[name]
    own = machine.job
    for point in own.left(machine.id)[:count]:
        assert of.came(name, own.study, own.experiment, point.key)


def test_the_longest_job_goes_first_and_with_a_time_limit_the_first_repeat():
    jobs = [job(repeat=1, points=2), job(repeat=2, points=4), job("f", 1, points=3)]
    assert scheduler(jobs).next("a").repeat == 2
    assert scheduler(jobs, by_repeat=True).next("a").name == "s: f repeat 1"


def test_a_machine_gets_one_job_at_a_time_and_no_job_goes_to_two():
    of = scheduler([job(repeat=n) for n in (1, 2, 3)])
    first, second = of.next("a"), of.next("b")
    assert of.next("a") is None and first.name != second.name
    measure(of, "a")
    assert of.ended("a") is None
    assert of.next("a").name not in (first.name, second.name)


def test_the_job_of_a_lost_machine_is_measured_elsewhere_from_its_start():
    of = scheduler([job(points=3)])
    of.next("a")
    measure(of, "a", 1)
    of.lose("a")
    taken = of.next("b")
    assert [point.key for point in taken.left("id-b")] == [point.key for point in taken.points], "all on one machine"


def test_a_half_measured_repeat_waits_for_its_machine_while_there_is_other_work():
    of = scheduler([job(repeat=1), job(repeat=2)], machines="ab")
    of.next("a")
    measure(of, "a", 1)
    of.lose("a")
    assert of.next("b").repeat == 2
    of.join("a", "id-a")
    again = of.next("a")
    assert again.repeat == 1 and len(again.left("id-a")) == 1, "what it had measured is not measured again"


def test_a_repeat_that_was_begun_in_an_earlier_run_goes_to_the_machine_that_began_it():
    of = scheduler([job(repeat=1, machines=["id-b"]), job(repeat=2)])
    assert of.next("a").repeat == 2
    measure(of, "a")
    of.ended("a")
    assert of.next("a") is None, "b is there"
    assert of.next("b").repeat == 1


def test_it_is_measured_whole_elsewhere_where_that_machine_is_not_there_or_may_not():
    begun = job(repeat=1, machines=["id-gone"])
    assert len(scheduler([begun]).next("a").left("id-a")) == 2
    of = scheduler([job(repeat=1, machines=["id-b"])])
    of.join("b", "id-b", studies={"another"})
    assert of.next("b") is None and of.next("a").repeat == 1


def test_of_a_repeat_of_two_machines_the_one_with_most_goes_on():
    mixed = job(points=4, machines=["id-a", "id-b", "id-b"])
    of = scheduler([mixed])
    assert of.next("a") is None
    assert [point.key for point in of.next("b").left("id-b")] == [mixed.points[0].key, mixed.points[3].key]


def test_a_record_of_a_machine_that_was_taken_for_lost_is_not_wanted():
    of = scheduler([job()])
    late = of.next("a")
    of.lose("a")
    of.next("b")
    assert not of.came("a", "s", "e", late.points[0].key)
    measure(of, "b")
    assert of.came("b", "s", "e", late.points[0].key), "it was measured again, since the machine was busy"
    assert of.machines["b"].done == len(late.points), "it counts once"
    assert of.ended("b") is None


def test_a_job_that_fails_is_tried_on_another_machine_and_then_given_up():
    of = scheduler([job(repeat=1)])
    of.next("a")
    assert of.ended("a", "it broke").repeat == 1
    assert of.next("a") is None
    of.next("b")
    of.ended("b", "it broke again")
    (failed, why), = of.failed
    assert failed.repeat == 1 and why == "it broke again" and not of.left("s")


def test_on_a_single_machine_it_is_tried_again_there():
    of = scheduler([job()], machines="a")
    of.next("a")
    of.ended("a", "it broke")
    assert of.next("a") is not None


def test_a_job_that_ends_well_without_its_records_has_failed():
    of = scheduler([job()], machines="a")
    of.next("a")
    measure(of, "a", 1)
    assert of.ended("a") is not None and of.left("s") == 1


def test_a_machine_whose_jobs_fail_in_a_row_gets_no_more_and_another_takes_them():
    of = scheduler([job(repeat=n) for n in (1, 2, 3)])
    for _ in range(2):
        of.next("a")
        of.ended("a", "no space")
    assert of.next("a") is None and of.machines["a"].aside == "no space"
    for _ in range(3):
        assert of.next("b")
        measure(of, "b")
        of.ended("b")
    assert not of.left("s") and not of.failed


def test_a_full_machine_is_put_aside_and_its_job_is_not_to_blame():
    of = scheduler([job()])
    of.next("a")
    of.put_aside("a", "its disk is full")
    assert of.next("b") and not of.failed and of.machines["a"].job is None


def test_each_machine_measures_its_own_ceilings_once_and_one_set_of_records_is_kept():
    ceiling = Point("ceiling", "c", 1.0, 30.0)
    of = scheduler([job(repeat=n) for n in (1, 2, 3)], own={"s": [("ceilings", ceiling)]})
    for name, expected in (("a", True), ("b", False)):
        of.next(name)
        assert of.machines[name].own_left == (ceiling,)
        assert of.came(name, "s", "ceilings", "ceiling") is expected
    measure(of, "a")
    of.ended("a")
    of.next("a")
    assert of.machines["a"].own_left == ()


def test_a_machine_stays_with_the_study_that_it_has_ceilings_of_and_else_goes_where_most_is_to_do():
    own = {study: [("ceilings", Point(f"{study} ceiling", "c", 1.0, 30.0))] for study in "st"}
    jobs = [job(repeat=n, point_s=10) for n in range(6)] + [job(repeat=n, study="t", point_s=15) for n in range(4)]
    of = scheduler(jobs, machines="abc", own=own)
    assert [of.next(name).study for name in "abc"] == ["s", "t", "s"]
    for point in of.machines["a"].own_left:
        of.came("a", "s", "ceilings", point.key)
    measure(of, "a")
    of.ended("a")
    assert of.next("a").study == "s"


def test_jobs_that_no_machine_may_have_are_stranded():
    of = scheduler([job(), job(study="other")], machines="")
    of.join("a", "id-a", studies={"s"})
    assert [one.study for one in of.stranded()] == ["other"]
    of.lose("a")
    assert len(of.stranded()) == 2


def test_simulated_two_machines_take_half_and_a_fast_one_more_jobs():
    jobs = [job(repeat=n, points=2, point_s=10, setup_s=0) for n in range(8)]
    assert simulate(scheduler(jobs, "a")).seconds == pytest.approx(160)
    assert simulate(scheduler(jobs, "ab")).seconds == pytest.approx(80)
    assert simulate(scheduler(jobs, "ab"), speeds={"a": 3.0}).seconds < 60
    assert simulate(scheduler(jobs, [f"m{i}" for i in range(100)])).seconds == pytest.approx(20), "the longest job"


def test_a_simulation_leaves_the_scheduler_as_it_is_and_counts_what_is_under_way():
    of = scheduler([job(repeat=n, setup_s=0) for n in (1, 2)], "a")
    of.next("a", now=100.0)
    assert simulate(of, now=110.0).seconds == pytest.approx(30)
    assert len(of.waiting) == 1 and of.machines["a"].job


def test_what_a_job_has_measured_is_taken_from_the_time_left_once():
    of = scheduler([job(points=4, setup_s=0)], "a")
    points = of.next("a", now=100.0).points
    for point, now in zip(points, (110.0, 120.0, 130.0)):
        of.came("a", "s", "e", point.key, now)
    assert simulate(of, now=135.0).seconds == pytest.approx(5)


def test_a_set_up_that_is_done_is_taken_from_the_time_left():
    points = tuple(Point(f"p{i}", "one block", 100.0, 10.0) for i in range(5))
    of = scheduler([Job("s", "e", 1, points)], "a")
    of.next("a", 0.0)
    assert simulate(of, now=0.0).seconds == pytest.approx(150)
    of.came("a", "s", "e", "p0", 110.0)
    assert simulate(of, now=115.0).seconds == pytest.approx(35)


def test_a_ceiling_that_is_measured_is_taken_from_the_time_left_once():
    ceiling = Point("ceiling", "c", 0.0, 30.0)
    of = scheduler([job(points=1, setup_s=0)], "a", own={"s": [("ceilings", ceiling)]})
    of.next("a", now=100.0)
    of.came("a", "s", "ceilings", "ceiling", 130.0)
    assert simulate(of, now=130.0).seconds == pytest.approx(10)


def test_jobs_are_told_apart_without_comparing_their_points(monkeypatch):
    compared = []
    monkeypatch.setattr(Job, "__eq__", lambda one, other: compared.append(one.name) or one is other)
    simulate(scheduler([job(repeat=n, machines=["id-gone"] * (n % 2)) for n in range(20)], "abc"))
    assert not compared


def test_simulated_ceilings_are_measured_on_each_machine_again():
    own = {"s": [("ceilings", Point("ceiling", "c", 0.0, 7.0))]}
    jobs = [job(repeat=n, points=1, setup_s=0) for n in range(4)]
    found = simulate(scheduler(jobs, "ab", own=own))
    assert (found.seconds, found.own_s) == (pytest.approx(27), pytest.approx(14))


def test_a_job_that_a_reboot_cut_short_goes_on_where_it_was_and_not_for_ever():
    of = scheduler([job(points=2)])
    of.next("a")
    measure(of, "a", 1)
    assert of.killed("a", "killed") and not of.failed
    assert of.next("b") is None and len(of.next("a").left("id-a")) == 1
    of.killed("a", "killed")
    of.next("a")
    of.killed("a", "killed")
    assert of.next("b") is not None, "its process is killed again and again there"


@pytest.mark.parametrize("gone", ["lose", "killed", "give_back", "put_aside"])
def test_a_job_of_which_nothing_is_left_is_not_measured_again_when_its_machine_goes(gone):
    """Its last record was home, and another machine measured all of it once more."""
    of = scheduler([job(points=2)])
    of.next("a")
    measure(of, "a")
    getattr(of, gone)("a", *["it is gone"] * (gone in ("killed", "put_aside")))
    assert of.next("b") is None and not of.left("s") and not of.failed


def test_a_job_of_ceilings_alone_waits_until_they_are_measured():
    ceiling = Point("ceiling", "c", 1.0, 30.0)
    of = scheduler([Job("s", "ceilings", 1, ())], own={"s": [("ceilings", ceiling)]})
    of.next("a")
    of.lose("a")
    assert of.next("b") is not None
    assert of.came("b", "s", "ceilings", "ceiling")
    of.lose("b")
    assert not of.left("s")


def test_where_a_job_fails_on_two_machines_these_are_not_to_blame():
    """Two repeats that fail everywhere had set aside all machines but one."""
    of = scheduler([job(repeat=n) for n in (1, 2, 3, 4)], "abc")
    for name in "abab":
        assert of.next(name)
        of.ended(name, "a bug")
    assert len(of.failed) == 2 and not any(of.machines[name].aside for name in "ab")
    assert of.next("a") and of.next("b")


def test_a_job_of_a_later_round_has_all_its_tries():
    of = scheduler([job(points=1)])
    of.next("a")
    of.ended("a", "it broke")
    of.next("b")
    measure(of, "b")
    assert of.ended("b") is None
    of.add([job(points=1)])
    of.next("a")
    of.ended("a", "it broke")
    assert of.next("b") is not None and not of.failed


def test_a_job_whose_points_are_home_has_failed_where_its_ceiling_has():
    """What the ceiling failed of would be said nowhere."""
    ceiling = Point("ceiling", "c", 1.0, 30.0)
    of = scheduler([job(points=2), job(points=2, repeat=2)], own={"s": [("ceilings", ceiling)]})
    of.next("a")
    measure(of, "a")
    assert of.ended("a", "the ceiling failed") is not None and of.left("s") == 2
    of.next("a")
    assert of.came("a", "s", "ceilings", "ceiling")
    measure(of, "a")
    assert of.ended("a", "its lab would not go down") is None, "all of it is home"
