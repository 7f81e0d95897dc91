"""Asking claims until they are decided, with made-up values in place of servers."""

import json
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import asked_book
import pytest

from labbook.claims import claims
from labbook.errors import InputError
from labbook.pipeline.executing import pages, progress
from labbook.pipeline.fleet import run as fleet_run
from labbook.pipeline.running import asking, plan, run, status


@pytest.fixture(autouse=True)
def no_lab(monkeypatch):
    monkeypatch.setattr(run, "check_needs", lambda *_: None)
    monkeypatch.setattr(run, "sweep_labs", lambda: None)


@pytest.fixture
def asked(book, forked):
    asked_book.write(book)
    return book


def repeats(book) -> dict:
    """{experiment and setting: how many repeats were measured}"""
    found = Counter(label.rpartition(" repeat ")[0] for label in asked_book.measured(book))
    assert len(set(asked_book.measured(book))) == sum(found.values()), "a point was measured twice"
    return dict(found)


def test_what_is_decided_gets_no_further_repeats_and_the_page_is_made(asked, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(asking, "PAGE_ROUNDS", 1e6)       # the page needs all of the time
        assert run.run([], run.Options(which="all", until=time.time() + 3600)) == 3
    late = pages.note("asked")["board"]["open"]
    assert [one["id"] for one in late if one["late"]] == ["clear", "noisy", "other"]
    assert asked_book.measured(asked) == [] and "longer than the time limit" in capsys.readouterr().err
    executed = []
    monkeypatch.setattr(asking, "variables", lambda *given, real=asking.variables: executed.append(real(*given)) or
                        executed[-1])
    assert run.run([], run.Options(which="all")) == 0
    last = json.loads(executed[-1]["LABBOOK_ASK"])      # it has made the page, too
    assert last["last"] and not last["page"] and last["claims"] == ["noisy"]
    assert repeats(asked) == {
        "ceiling: clients=1": 1, "ceiling: clients=9": 1, "disks: store=a": 6, "disks: store=b": 6,
        "speed: store=a clients=1": 6, "speed: store=b clients=1": 6,
        "speed: store=a clients=9": 12, "speed: store=b clients=9": 12}
    verdicts = {one["id"]: one["verdict"] for one in claims.verdicts("asked")}
    assert verdicts == {"clear": "replicated", "noisy": "replicated", "other": "replicated", "elsewhere": "not run"}
    note = pages.note("asked")
    assert (note["state"], note["board"]["decided"], note["board"]["asked"]) == ("ok", 3, 4)
    assert note["points"] == {"done": 50, "total": 50, "measured": 50, "failed": 0}
    output = capsys.readouterr().err
    assert "3 of 4 claims decided" in output and "left out: elsewhere, this profile has no point of it" in output
    assert "'speed': 36" in asked.printed("asked")

    before = asked_book.measured(asked)
    assert run.run([], run.Options(which="all")) == 0     # nothing is left to ask
    assert "1 of 1 up to date" in capsys.readouterr().err and asked_book.measured(asked) == before


QUICK = "quick: {claims: headline, seconds: 3000}\n"


def test_the_quick_profile_asks_what_lab_yml_says(book, forked, capsys):
    asked_book.write(book, asked_book.LAB + QUICK)
    assert plan.plan([], run.Options()) == 0
    output = capsys.readouterr().out
    assert "repeats until 1 headline claims have a verdict; 0 have one" in output
    assert "quick profile: 14 points to measure, about " in output and ", time limit 50 min" in output
    assert "  open: clear\n" in output and asked_book.measured(book) == []
    assert "  up to 25 min beyond the time limit for claims that are expected to be decided then\n" in output
    assert plan.plan([], run.Options(), verbose=True) == 0
    assert "open: clear, 0 repeats, not judged yet, about " in capsys.readouterr().out

    assert run.run([], run.Options()) == 0
    assert repeats(book) == {"ceiling: clients=1": 1, "ceiling: clients=9": 1,
                             "speed: store=a clients=1": 6, "speed: store=b clients=1": 6}
    verdicts = {one["id"]: one["verdict"] for one in claims.verdicts("asked")}
    assert verdicts == {"clear": "replicated"} | dict.fromkeys(("noisy", "other", "elsewhere"), "not run")
    assert "1/1 decided" in status.table(status.rows())
    assert run.is_current("asked", {}, run.Options())
    assert not run.is_current("asked", {}, run.Options(which="all"))
    assert not run.is_current("asked", {}, run.Options(given=(("repeats", "2"),)))    # as declared, by whoever says how


def test_a_quick_run_leaves_out_the_claims_that_lab_yml_names(book, forked, capsys):
    quick = "quick: {claims: paper, without: [noisy, other], seconds: 3000}\n"
    asked_book.write(book, asked_book.LAB + quick)
    assert plan.plan([], run.Options()) == 0
    output = capsys.readouterr().out
    assert "repeats until 1 paper claims have a verdict" in output and "left out: elsewhere, noisy, other" in output
    assert run.run([], run.Options()) == 0
    assert repeats(book) == {"ceiling: clients=1": 1, "ceiling: clients=9": 1,
                             "speed: store=a clients=1": 6, "speed: store=b clients=1": 6}
    board = pages.note("asked")["board"]
    assert (board["decided"], board["asked"]) == (1, 4)
    assert "left out: noisy, it takes longer than the quick profile" in asking.lines(board)
    assert run.is_current("asked", {}, run.Options())
    asks = asking.question("asked", run.Options())
    assert asks.is_answered(board) and not replace(asks, without=("other",)).is_answered(board)
    asked_book.write(book, asked_book.LAB + quick.replace("noisy", "nosy"))
    with pytest.raises(InputError, match=r"lab.yml: quick.without: .*'nosy'.*did you mean 'noisy'"):
        run.run([], run.Options())


def question(book, **options):
    return asking.question("asked", run.Options(**options))


def test_only_the_quick_profile_without_parameters_asks_by_itself(book, forked):
    asked_book.write(book, asked_book.LAB + QUICK)
    assert question(book).claims == ("clear",) and question(book).quick
    for options in ({"profile": "full"}, {"given": (("repeats", "3"),)}, {"published": True}):
        assert question(book, **options) is None
    assert question(book, profile="full", which="paper").claims == ("clear", "noisy", "other", "elsewhere")
    asked_book.write(book)
    assert question(book) is None


def test_claims_that_there_are_not_are_refused_before_anything_starts(book, capsys):
    asked_book.write(book, asked_book.LAB + QUICK, [{**one, "headline": False} for one in asked_book.CLAIMS])
    with pytest.raises(InputError, match=r"lab.yml: quick.claims: .*headline.*allowed: paper or all"):
        run.run([], run.Options())
    with pytest.raises(InputError, match=r"claims.yml: --claims: no headline claim.*allowed: paper or all"):
        run.run(["asked"], run.Options(which="headline"))
    assert run.run([], run.Options(which="headline")) == 0
    assert "asked: no headline claim that measurements decide" in capsys.readouterr().err


def test_claims_are_asked_by_their_ids(asked, capsys):
    for wrong in ("cleer", "clear,headline"):
        with pytest.raises(InputError, match="--claims: no claim '(cleer|headline)'.*ids of claims"):
            run.run([], run.Options(which=wrong))
    assert run.run([], run.Options(which="other,clear")) == 0
    assert repeats(asked) == {
        "ceiling: clients=1": 1, "ceiling: clients=9": 1, "disks: store=a": 6, "disks: store=b": 6,
        "speed: store=a clients=1": 6, "speed: store=b clients=1": 6}
    assert "2 of 2 named claims decided" in capsys.readouterr().err
    assert run.run([], run.Options(which="other,clear")) == 0, "the study is up to date, and its claims have their ids"
    with pytest.raises(InputError, match="no claim 'cleer'"):
        run.run([], run.Options(which="cleer"))
    assert "1 of 1 up to date" in capsys.readouterr().err


def test_a_quick_run_that_the_commands_time_cut_short_is_not_up_to_date(book, forked, monkeypatch, capsys):
    asked_book.write(book, asked_book.LAB + QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(asking, "PAGE_ROUNDS", 1e6)       # the page needs all of the time
        assert run.run([], run.Options(until=time.time() + 2000)) == 3, "lab.yml would allow 3000 s"
        assert pages.note("asked")["board"]["cut"]
        assert run.run([], run.Options(until=time.time() + 4000)) == 0, "lab.yml's own time is what is meant"
    assert not pages.note("asked")["board"]["cut"]
    assert run.run([], run.Options()) == 0 and "1 of 1 up to date" in capsys.readouterr().err


def test_a_fleet_asks_for_as_long_as_one_machine_would(monkeypatch):
    monkeypatch.setattr(asking.time, "time", lambda: 1000.0)
    seen = []
    monkeypatch.setattr(asking, "next_round", lambda asks, survey, stop, round_s: seen.append(stop) or (
        SimpleNamespace(late=(), repeats={}), {"seconds": 0, "open": []}))
    asks = asking.Question("asked", "all", 180, quick=True)
    for made in (asking.Asking("asked", {}, None, {}, asks),
                 fleet_run._Asking(SimpleNamespace(workers=lambda study: 1), "asked", {}, None, {}, asks, None, None)):
        made.next_round(0.0)
    assert seen == [1180.0, 1180.0]


def test_a_quick_run_of_a_fleet_has_the_overtime_of_one_machine(monkeypatch):
    monkeypatch.setattr(asking.time, "time", lambda: 1000.0)
    seen = []
    late = SimpleNamespace(late=("one",), repeats={}, claims=("one",), seconds={})
    monkeypatch.setattr(asking, "next_round", lambda asks, survey, stop, round_s: seen.append(stop) or (
        late, {"seconds": 0, "open": []}))
    asks = asking.Question("asked", "all", 180, quick=True)
    for workers in (1, 3):
        fleet_run._Asking(SimpleNamespace(workers=lambda study, n=workers: n), "asked", {}, None, {}, asks, None,
                          None).next_round(0.0)
    more = 180 * (1 + asking.OVERTIME)
    assert [one - 1000 for one in seen if one] == [180, more, 3 * 180, 3 * more]


def test_a_quick_run_goes_on_for_claims_that_are_decided_soon_and_for_no_others(book, monkeypatch):
    """It ended a minute before most of its claims would have had their verdicts."""
    asked_book.write(book)
    clock = [1000.0]
    monkeypatch.setattr(asking.time, "time", lambda: clock[0])
    asks = asking.Asking("asked", {}, None, {}, asking.Question("asked", "all", 180, quick=True))

    def following(repeats, needed, **more):
        asks.survey = {"unread": {}, "experiments": {"speed": {
            "setups": [0], "done": [repeats], "declared": 1, "setup_s": 0.0, "point_s": [20.0]}}, "claims": [
                {"id": name, "experiment": "speed", "points": [0], "verdict": "open", "needed": at}
                for name, at in needed.items()]}
        return asks.next_round(0.0)

    clock[0] = 1181
    assert following(8, {"clear": 9, "noisy": 60}).repeats == {"speed": 9}
    assert asks._stop == 1180 + 90 and asks.board["seconds"] == 20 and not asks.board["cut"]
    assert following(9, {"noisy": 60}).repeats == {}
    assert following(3, {"clear": None}).repeats == {"speed": 6}       # its first look
    clock[0] = 1255
    assert following(8, {"clear": 9}).repeats == {}
    with_limit = asking.Asking("asked", {}, None, {}, asks.asks, until=1190)       # of the command
    with_limit.survey, clock[0] = asks.survey, 1185
    assert with_limit.next_round(0.0).repeats == {} and with_limit._stop == 1190


@pytest.mark.parametrize("quick, message", [
    ("{claims: mine, seconds: 180}", "quick.claims.*headline, paper, all"), ("{claims: all}", "quick.*seconds"),
    ("{claims: all, seconds: 0}", "quick.seconds.*above 0"), ("{claims: all, seconds: 9, hours: 1}", "quick.*hours")])
def test_a_wrong_key_of_quick_is_named(book, quick, message):
    asked_book.write(book, asked_book.LAB + f"quick: {quick}\n")
    with pytest.raises(InputError, match=rf"lab.yml: {message}"):
        run.run([], run.Options())


def test_studies_share_the_time_of_an_ask(monkeypatch):
    monkeypatch.setattr(asking.time, "time", lambda: 1000.0)
    assert asking.share(run.Options(which="all", until=2000.0), 4).until == 1250
    assert asking.share(run.Options(which="all", until=2000.0), 1).until == 2000
    assert asking.share(run.Options(until=2000.0), 4).until == 2000


BOARD = {"which": "headline", "claims": ["clear", "noisy", "wide"], "asked": 3, "decided": 1,
         "open": [{"id": "noisy", "statement": "s", "repeats": 6, "needed": 12, "seconds": 90.0, "late": False},
                  {"id": "wide", "statement": "s", "repeats": 9, "needed": None, "seconds": 900.0, "late": True}],
         "closed": [], "now": {"speed": {"repeats": 12, "claims": ["noisy"]}}, "seconds": 120.0}


def test_progress_is_the_board(book, capsys):
    asked_book.write(book)
    with pages.only_me("asked") as partial:
        progress.beside(partial).write_text("".join(json.dumps(event) + "\n" for event in (
            {"event": "begin", "at_s": time.time() - 30, "profile": "quick", "board": {**BOARD, "at_s": time.time() - 30}},
            {"event": "done", "experiment": "speed", "done": 3, "total": 9, "seconds": 1})))
        row, = status.rows()
        story = progress.RunState(progress.beside(partial))
        story.read_on()
    assert row["seconds_left"] == pytest.approx(90, abs=5)
    assert "1/3 decided" in status.table([row])
    assert "1/3 claims decided  3/9 points of speed" in progress.Bar("asked").line(story)
    assert asking.lines(row["board"]) == [
        "1 of 3 headline claims decided", "now: speed, up to 12 repeats, for noisy",
        "open: noisy, 6 repeats, needs about 12 repeats, about 1 min 30 s",
        "open: wide, 9 repeats, may need more than the last look, about 15 min, longer than the time limit"]


@pytest.mark.parametrize("repeats, needed, state", [
    (0, None, "not judged yet"), (3, 60, "judged after 6"), (3, None, "judged after 6"),
    (6, 12, "needs about 12 repeats"), (9, None, "may need more than the last look")])
def test_what_is_reported_of_an_open_claim_is_what_its_time_is_for(repeats, needed, state):
    one = {"id": "noisy", "repeats": repeats, "needed": needed, "seconds": 90, "late": False}
    assert asking.open_lines({"open": [one], "closed": []}) == [
        f"open: noisy, {repeats} repeats, {state}, about 1 min 30 s"]


def test_the_number_of_points_is_right_from_the_start(book, monkeypatch):
    asked_book.write(book)
    seen = set()
    monkeypatch.setattr(progress.Bar, "show", lambda self, story: seen.add(story.total))
    assert run.run([], run.Options()) == 0
    assert seen <= {0, 14} and 14 in seen and len(asked_book.measured(book)) == 14      # 0: nothing is read yet


def test_a_refused_parameter_ends_an_ask_before_anything_is_measured(asked, capsys):
    notebook = asked.root / "notebooks/asked.ipynb"
    notebook.write_text(notebook.read_text().replace("study.complete()", "raise __import__('labbook.errors').errors.InputError('no')"))
    assert run.run([], run.Options(which="all")) == 2
    assert "asked: not started: no" in capsys.readouterr().err and pages.note("asked") == {}


def test_an_ask_that_is_cut_short_counts_the_points_of_its_last_round():
    asks = asking.Asking("asked", {}, None, {}, asking.Question("asked", "all"))
    asks.survey = {"claims": [], "experiments": {}, "unread": {"ceiling": {"declared": 5, "left": 3}}}
    points = asks._answer(SimpleNamespace(state=pages.INTERRUPTED), SimpleNamespace(measured=4, total=9, done=6)).points
    assert (points["done"], points["total"]) == (6, 9)


@pytest.mark.parametrize("until, ends", [(None, 1000 + 180 + 60), (1200, 1200)])
def test_what_is_built_once_does_not_count_as_time_of_a_quick_run(monkeypatch, until, ends):
    """As time of a user it does."""
    monkeypatch.setattr(asking.time, "time", lambda: 1000.0)
    asks = asking.Asking("asked", {}, None, {}, asking.Question("asked", "all", 180, quick=True), until)
    monkeypatch.setattr(asking, "Driver", lambda *_, **__: SimpleNamespace(
        run=lambda *_: None, story=SimpleNamespace(survey={"claims": [], "built_s": 60.0}, measured=0, failed=0,
                                                   lab_time=dict)))
    _, story = asks._execute(None, {})
    assert asks._time_is_up() == ends and story.survey == {"claims": []}


def test_a_point_of_which_nothing_is_known_takes_what_the_studys_others_take(book):
    book.write("data/papers/demo/lab.yml", "needs: {minutes: {full: 100}}")
    asks = asking.Question("demo", (), profile="full")
    survey = {"experiments": {"new": {"point_s": None, "declared": 3}}, "unread": {"old": {"declared": 2}}}
    assert asking._default(asks, survey) == 1200
    survey["experiments"]["known"] = {"point_s": [20.0, 40.0], "declared": 2}
    assert asking._default(asks, survey) == 30
