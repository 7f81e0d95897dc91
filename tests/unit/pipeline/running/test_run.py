import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from labbook.errors import InputError
from labbook.lab.local import provider
from labbook.pipeline.executing import driver, pages
from labbook.pipeline.running import plan, run
from labbook.pipeline.running.run import check_needs
from labbook.pipeline.setup import doctor


@pytest.fixture(autouse=True)
def no_lab(monkeypatch):
    monkeypatch.setattr(run, "check_needs", lambda *_: None)
    monkeypatch.setattr(run, "sweep_labs", lambda: None)


def test_an_environment_is_one_file_whatever_folder_it_is_named_from(book, monkeypatch, tmp_path):
    file = book.write("environments/mine.yml", "provider: namespaces\n")
    book.study("good", "1")
    monkeypatch.chdir(book.root / "notebooks")
    assert run.environment_file("../environments/mine.yml") == run.environment_file(str(file)) == "environments/mine.yml"
    other = tmp_path / "other" / "environments"
    other.mkdir(parents=True)
    (other / "mine.yml").write_text("provider: ssh\n")
    monkeypatch.chdir(other.parent)
    assert run.environment_of("good", {"environment": "environments/mine.yml"}).provider == "namespaces"


def test_a_notebook_runs_with_its_parameters_and_its_page_is_kept(book):
    book.study("good", "import os\nprint(repeats, os.getcwd() == os.environ['LABBOOK_ROOT'])",
               book.complete)
    assert run.run([], run.Options(given=(("repeats", "7"),))) == 0
    assert "7 True" in book.printed("good")
    note = pages.note("good")
    assert (note["state"], note["parameters"]) == ("ok", {"repeats": 7})
    assert note["machine"]["cores"] and note["seconds"] > 0
    assert json.loads((book.root / "build/status.json").read_text())[0]["state"] == "ok"


def test_it_runs_again_only_when_something_it_is_made_from_has_changed(book, monkeypatch, capsys):
    study = book.study("good", book.complete)
    ran = []
    monkeypatch.setattr(run, "run_one", lambda study, *_: ran.append(study) or "ok")
    real = run.Driver(
        "good", {}, pages.partial("good"), {})  # one real execution, then only its note is moved
    with pages.only_me("good") as partial, driver.Interrupts() as interrupts:
        assert real.run(interrupts).state == "ok"
        from labbook.pipeline.sources import keys
        pages.accept("good", partial, {"state": "ok", "key": keys.page_key("good", {}), "profile": "quick",
                                       "parameters": {}, "published": False})

    def runs():
        ran.clear()
        run.run([], run.Options())
        return ran == ["good"]

    assert not runs()
    for name in ("data/papers/good/full.yml", "environments/local.yml", "constraints.txt"):
        file = book.root / name
        before = file.read_text() if file.exists() else ""
        file.write_text(before + "# more\n")
        assert runs(), name
        file.write_text(before)
        assert not runs(), name
    study.write_text(study.read_text().replace("# Good", "# Better"))
    assert runs()
    study.write_text(study.read_text().replace("# Better", "# Good"))
    records = book.write("../records/here/good/clients/a.parquet", "x")
    assert runs()
    records.unlink()
    assert not runs()
    pages.page("good").write_text("{}")  # half replaced by a killed run
    assert runs()


@pytest.mark.parametrize("cell, message", [
    ("raise ValueError('no such thing')", "no such thing"),
    ("import sys; sys.exit(0)", "study.complete"),
    ("import os; os._exit(0)", "died"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died"),
    ("1", "study.complete"),
])
def test_a_notebook_that_did_not_come_to_its_end_is_a_failure_whatever_papermill_says(
        book, cell, message, capsys):
    book.study("bad", "print('before')", cell)
    assert run.run([], run.Options()) == 1
    note = pages.note("bad")
    assert note["state"] == "failed"
    assert message.lower() in json.dumps(note["error"]).lower()
    assert "before" in book.printed("bad")          # its page is there, with what it printed
    assert "bad: failed" in capsys.readouterr().err
    assert not list((book.root / "build/pages").glob(".*.partial.ipynb"))


def test_the_others_go_on_after_one_failed(book, forked):
    book.study("a", "1/0")
    book.study("b", book.complete)
    assert run.run([], run.Options()) == 1
    assert pages.note("b")["state"] == "ok"
    assert pages.note("a")["error"]["name"] == "ZeroDivisionError"


def test_nothing_starts_when_one_parameter_of_one_study_is_wrong(book):
    book.study("a", book.complete)
    book.study("b", book.complete, full="repeats: two\n")
    with pytest.raises(InputError, match="full.yml"):
        run.run([], run.Options(profile="full"))
    assert not (book.root / "build").exists()


@pytest.mark.parametrize("file, text, message", [
    ("environments/local.yml", "provider: namespace\n", "local.yml: provider.*namespaces"),
    ("data/papers/a/lab.yml", "sites: [x]\nhost: {}\n", "lab.yml: host.*did you mean 'hosts'"),
    ("data/papers/a/lab.yml", "sites: [x]\nhosts: {db: {site: x, role: db}}\nsystems: "
     "[{name: mysql, host: db, settings: {version: '9'}}]\n", "lab.yml: .*version.*5.5.9"),
    ("data/papers/a/claims.yml", "- id: faster\n", "claims.yml: .*missing"),
])
def test_nothing_starts_when_a_file_of_a_study_is_wrong(book, file, text, message):
    book.study("a", book.complete)
    book.write(file, text)
    for start in (run.run, plan.plan):
        with pytest.raises(InputError, match=message):
            start([], run.Options())
    assert not (book.root / "build").exists()


def test_what_the_notebook_refuses_is_reported_before_anything_is_measured(book, forked, monkeypatch, capsys):
    monkeypatch.setattr(run, "check_needs", lambda *_: None)
    monkeypatch.setattr(run, "sweep_labs", lambda: None)
    book.write("data/papers/a/lab.yml", "sites: [x]\nhosts: {db: {site: x, role: db}}\n")
    book.study("a", "import os, pathlib\nif 'LABBOOK_PLAN' not in os.environ: pathlib.Path('measured').touch()",
               "from labbook.errors import InputError\nif repeats > 2: raise InputError('3 are too many', key='repeats')",
               book.complete)
    assert run.run([], run.Options()) == 0
    note = pages.note("a")
    for place in book.root.rglob("measured"):
        place.unlink()
    assert run.run([], run.Options(given=(("repeats", "3"),))) == 2
    assert "a: not started: repeats: 3 are too many" in capsys.readouterr().err
    assert not list(book.root.rglob("measured")) and pages.note("a") == note, "the page of before stays"


STOPS_A_PLAN = """
import os
from labbook.errors import Stopped
if "LABBOOK_PLAN" in os.environ:
    raise Stopped("planned")
"""
REFUSES = "from labbook.errors import InputError\nraise InputError('too many', key='repeats')"


@pytest.mark.parametrize("cells, code", [((REFUSES, None), 1), ((REFUSES, REFUSES), 2), ((REFUSES, "1/0"), 1)])
def test_wrong_input_is_the_code_only_where_all_were_refused(book, forked, cells, code):
    """2 says that nothing was started, and yet studies had been measured."""
    for study, cell in zip("ab", cells):
        book.write(f"data/papers/{study}/lab.yml", "sites: [x]\nhosts: {db: {site: x, role: db}}\n")
        book.study(study, cell or STOPS_A_PLAN, book.complete)
    assert plan.plan([], run.Options()) == code and run.run([], run.Options()) == code


def test_a_notebook_that_is_saved_broken_while_another_runs_keeps_nothing_else_back(book, forked, capsys):
    """The command had ended with the code of wrong input, and what came after was not run."""
    for study in "abc":
        book.write(f"data/papers/{study}/lab.yml", "sites: [x]\nhosts: {db: {site: x, role: db}}\n")
        book.study(study, STOPS_A_PLAN, book.complete)
    book.study("a", STOPS_A_PLAN, f"open({str(book.root / 'notebooks/b.ipynb')!r}, 'w').write('{{')", book.complete)
    assert run.run([], run.Options()) == 1
    assert [pages.note(study).get("state") for study in "abc"] == ["ok", None, "ok"]
    assert "b: not started: " in capsys.readouterr().err


RACK = """provider: ssh
user: op
key: {folder}/key
known_hosts: {folder}/known_hosts
root: /home/op/labs
hosts:
  rack1: {{address: 192.0.2.1, data: 10.0.0.1, roles: [db]}}
"""
AT_RACK = 'environment = "environments/rack.yml"\nrepeats = 2\n'


@pytest.fixture
def rack(book, tmp_path):
    """An environment file of a host of the user's own."""
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "known_hosts").touch()
    return book.write("environments/rack.yml", RACK.format(folder=tmp_path))


@pytest.mark.parametrize("cell, code", [("print('at op@192.0.2.1, 10.0.0.1')", 0),
                                        ("raise ValueError('at op@192.0.2.1, 10.0.0.1')", 1)])
def test_neither_a_page_nor_its_note_has_the_address_of_a_host(book, rack, cell, code):
    book.study("a", cell, book.complete, parameters=AT_RACK)
    assert run.run([], run.Options()) == code
    page, note = json.dumps(book.page("a")), json.dumps(pages.note("a"))
    for text in (page, note):
        assert "192.0.2.1" not in text and "10.0.0.1" not in text
    assert "at rack1, rack1" in page and ("at rack1, rack1" in note) == bool(code)


def test_as_many_free_cores_are_required_as_the_largest_lab_of_this_machine_takes(book, rack, monkeypatch):
    """Studies run one after the other, and those of hosts elsewhere need no core here."""
    asked = []
    monkeypatch.setattr(doctor, "require", lambda *_: None)
    monkeypatch.setattr(provider, "require_cores", asked.append)
    for study, cores in (("a", 1), ("b", 2), ("c", 3)):
        book.study(study, book.complete)
        book.write(f"data/papers/{study}/lab.yml",
                   f"sites: [x]\nhosts: {{db: {{site: x, role: db, limits: {{cores: {cores}}}}}}}\n")
    check_needs({"a": {}, "b": {}, "c": {"environment": "environments/rack.yml"}})
    assert asked == [2]


def test_a_kernel_is_told_to_measure_again_and_when_to_stop(book, forked):
    cell = "import os\nfor name in ('REMEASURE', 'UNTIL'):\n    print(os.environ.get(f'LABBOOK_{name}'))"
    book.study("a", cell, book.complete)
    in_2100 = 4102444800.0
    for options, told in (({"remeasure": True, "until": in_2100}, "1 4102444800.0"), ({"force": True}, "None None")):
        assert run.run([], run.Options(**options)) == 0
        assert book.printed("a").split() == told.split()


def test_unknown_studies_and_environments_are_named_with_what_is_there(book):
    book.study("cms", book.complete)
    with pytest.raises(InputError, match="did you mean 'cms'"):
        run.run(["cmss"], run.Options())
    with pytest.raises(InputError, match="environments/local.yml"):
        run.run([], run.Options(environment="nowhere.yml"))


def test_a_run_with_the_full_profiles_parameters_is_no_run_of_that_profile(book, forked):
    """It was called up to date, and then there was no complete run of the profile to publish."""
    book.study("a", "import os\nprint(repeats, os.environ['LABBOOK_PROFILE'])", book.complete)
    for profile, given in (("quick", (("repeats", "5"),)), ("full", ()), ("full", ())):
        assert run.run([], run.Options(profile, given)) == 0
        assert book.printed("a") == f"5 {profile}\n"


def test_when_the_time_is_up_nothing_more_starts_and_the_code_says_so(book):
    book.study("a", book.complete)
    assert run.run([], run.Options(until=time.time() - 1)) == 3
    assert pages.note("a") == {}


def test_a_study_that_pauses_leaves_the_earlier_page(book, forked):
    stopped = "from labbook.errors import Stopped\nimport os\n"
    book.study("a", "print(repeats)", stopped + "if repeats > 2: raise Stopped('time is up')",
               book.complete)
    assert run.run([], run.Options()) == 0
    assert run.run([], run.Options(given=(("repeats", "3"),))) == 3
    assert book.printed("a").startswith("2")
    note = pages.note("a")
    assert (note["state"], note["stopped"]["state"], note["key"]) == ("ok", "paused", None)
    assert note["stopped"]["profile"] == "quick" and note["stopped"]["lab_time"] == {"points_s": 0.0, "set_up_s": 0.0}


def test_published_runs_take_the_published_parameters_and_tell_the_kernel(book, forked):
    book.study("a", "import os\nprint(repeats, os.environ['LABBOOK_PUBLISHED'])", book.complete)
    book.write("data/published/a/epyc/run.json", '{"profile": "full", "parameters": {"repeats": 9}}')
    assert run.run([], run.Options(published=True)) == 0
    assert "9 1" in book.printed("a")
    assert pages.note("a")["profile"] == "full"


def test_a_published_set_of_own_hosts_is_read_without_the_file_of_its_hosts(book, forked):
    """The file is of who published it: the book could not be built elsewhere."""
    book.study("a", "print(repeats, environment)", book.complete)
    book.write("data/published/a/epyc/run.json", json.dumps(
        {"profile": "full", "parameters": {"repeats": 9, "environment": "environments/hosts.yml"}}))
    assert run.run([], run.Options(published=True)) == 0
    assert "9 environments/local.yml" in book.printed("a")
    assert pages.note("a")["environment"] == "environments/local.yml"


def test_a_study_of_which_nothing_is_published_is_left_out_of_the_published_book(book, capsys):
    book.study("a", book.complete)
    assert run.run([], run.Options(published=True)) == 0
    assert "a: nothing is published" in capsys.readouterr().err and pages.note("a") == {}


def test_two_runs_of_one_study_keep_off_each_other_and_the_others_go_on(book, forked, capsys):
    """One that another run was measuring had ended the whole run, after some were measured."""
    for study in "abc":
        book.study(study, book.complete)
    with pages.only_me("b"):
        with pytest.raises(pages.Busy, match="being run"), pages.only_me("b"):
            pass
        assert run.run([], run.Options()) == 1
    assert "b: not started: b is being run by another labbook" in capsys.readouterr().err
    assert [pages.note(study).get("state") for study in "abc"] == ["ok", None, "ok"]


@contextlib.contextmanager
def another_labbook(study, said):
    """It runs the study until what waits for it has said so."""
    holds, ended = threading.Event(), []

    def hold():
        with pages.only_me(study):
            holds.set()
            until(lambda: f"another labbook runs {study}" in said.getvalue())
            ended.append(study)

    other = threading.Thread(target=hold)
    other.start()
    assert holds.wait(10)
    yield ended
    other.join()


def test_published_results_wait_for_another_run(book, forked, monkeypatch):
    book.study("a", book.complete)
    book.write("data/published/a/epyc/run.json", '{"profile": "full", "parameters": {}}')
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())    # pytest's own loses what is written while it is read
    with another_labbook("a", said) as ended:
        assert run.run([], run.Options(published=True)) == 0 and ended == ["a"]
    assert pages.note("a")["published"]


def test_what_waits_for_another_run_can_be_interrupted(book, monkeypatch):
    book.study("a", book.complete)
    book.write("data/published/a/epyc/run.json", '{"profile": "full", "parameters": {}}')
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())

    def interrupt():
        until(lambda: "another labbook runs a" in said.getvalue())
        os.kill(os.getpid(), signal.SIGINT)

    with pages.only_me("a"):
        other = threading.Thread(target=interrupt)
        other.start()
        assert run.run([], run.Options(published=True)) == 130
    other.join()


SLOW = """
import time, atexit, pathlib
atexit.register(lambda: pathlib.Path('cleaned').write_text('x'))
from labbook.pipeline.executing.progress import append_event
append_event(event='plan', experiment='x', done=0, total=2)
pathlib.Path('started').write_text('x')
try:
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path('interrupted').write_text('x')
    raise
"""


def start(book, stderr=None):
    """`labbook run` in a process of its own, up to where its notebook sleeps; with its kernel."""
    code = ("import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"      # nohup has it ignored
            "from labbook.pipeline.running import run\nrun.check_needs = lambda *_: None\n"
            "run.sweep_labs = lambda: None\nraise SystemExit(run.run([], run.Options()))")
    press = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=stderr)
    until(lambda: (book.root / "started").exists())
    events = map(json.loads, (book.root / "build/pages/.slow.progress").read_text().splitlines())
    return press, next(event["pid"] for event in events if event["event"] == "kernel")


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_reaches_the_cell_and_lets_the_kernel_clean_up(book, number, code):
    book.study("slow", SLOW, "import pathlib; pathlib.Path('next').write_text('x')", book.complete)
    press, kernel = start(book)
    press.send_signal(number)
    assert press.wait(30) == code
    assert (book.root / "interrupted").exists() and (book.root / "cleaned").exists()
    assert not (book.root / "next").exists()
    assert not driver._is_kernel(kernel)
    assert not (book.root / "build/pages/slow.ipynb").exists()
    note = json.loads((book.root / "build/pages/slow.json").read_text())
    assert note["stopped"]["state"] == "interrupted"


def test_an_interrupt_that_ends_the_reader_of_stderr_too_cleans_up_all_the_same(book):
    """As `labbook run 2>&1 | tee log` does."""
    book.study("slow", SLOW, book.complete)
    reading, writing = os.pipe()
    press, kernel = start(book, stderr=writing)
    os.close(writing)
    os.close(reading)
    press.send_signal(signal.SIGINT)
    assert press.wait(30) == 130
    assert (book.root / "cleaned").exists() and not driver._is_kernel(kernel)
    assert json.loads((book.root / "build/pages/slow.json").read_text())["stopped"]["state"] == "interrupted"


def test_who_has_hang_ups_ignored_is_not_stopped_by_one(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with driver.Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_page_that_was_cut_short_while_it_was_written_is_removed(tmp_path):
    page = tmp_path / "page.ipynb"
    page.write_text('{"cells": [')
    pages.rewrite(page, lambda data: data)
    assert not page.exists()


def test_a_second_interrupt_does_not_wait(book):
    book.study("slow", SLOW.replace("    raise\n", "    time.sleep(600)\n"), book.complete)
    press, kernel = start(book)
    press.send_signal(signal.SIGINT)
    until(lambda: (book.root / "interrupted").exists())
    press.send_signal(signal.SIGINT)
    assert press.wait(60) == 130
    assert not driver._is_kernel(kernel)


def test_a_killed_press_leaves_no_kernel_and_the_next_run_no_remains(book):
    book.study("slow", SLOW, book.complete)
    press, kernel = start(book)
    os.kill(press.pid, signal.SIGKILL)
    press.wait()
    until(lambda: not driver._is_kernel(kernel))
    with pages.only_me("slow"):
        assert {p.name for p in (book.root / "build/pages").iterdir()} == {".slow.lock", "slow.json"}
    assert pages.note("slow")["stopped"]["state"] == "killed"
    assert pages.note("slow")["stopped"]["points"]["total"] == 2


MEET = """
import pathlib, time
pathlib.Path('{me}').touch()
end = time.monotonic() + 60
while not pathlib.Path('{other}').exists():
    assert time.monotonic() < end
    time.sleep(0.02)
"""


def test_two_presses_in_one_checkout_run_two_studies_at_once(book):
    book.study("a", MEET.format(me="a-is-here", other="b-is-here"), book.complete)
    book.study("b", MEET.format(me="b-is-here", other="a-is-here"), book.complete)
    code = ("import sys\nfrom labbook.pipeline.running import run\nrun.check_needs = lambda *_: None\n"
            "run.sweep_labs = lambda: None\nraise SystemExit(run.run(sys.argv[1:], run.Options()))")
    presses = [subprocess.Popen([sys.executable, "-c", code, study]) for study in "ab"]
    assert [press.wait(90) for press in presses] == [0, 0]
    assert not list(book.root.glob("*ipc*"))


def test_parameters_without_a_study_are_refused_where_there_are_several(book):
    for study in "ab":
        book.study(study, book.complete)
    for start in (run.run, plan.plan):
        with pytest.raises(InputError, match="-p repeats: .*name the study.*a, b"):
            start([], run.Options(given=(("repeats", "3"),)))
