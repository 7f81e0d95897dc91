import json
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from labbook import cli
from labbook.commands import book as book_commands
from labbook.commands import lab as lab_commands
from labbook.errors import InputError, LabError
from labbook.pipeline.executing import pages
from labbook.pipeline.running import run
from labbook.pipeline.sources import keys

HEAVY = {"pandas", "numpy", "papermill", "nbclient", "nbformat", "jupyter_client",
         "ipykernel", "zmq", "fabric", "paramiko", "ipyparallel", "matplotlib", "pyarrow", "sphinx", "jsonschema"}
LOADED = f"""
import pathlib, sys
from labbook import cli
from labbook.pipeline.executing import driver
driver.LABS = ()      # labs of this machine are not the test's
try:
    code = cli.main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("LOADED", code, sorted({HEAVY!r} & set(sys.modules)))
"""


def command(*args):
    """Run a command in a new process; (its output, what it loaded)."""
    done = subprocess.run([sys.executable, "-c", LOADED, *args], capture_output=True, text=True)
    return done.stdout, done.stdout.rpartition("LOADED ")[2].strip()


def up_to_date(book, study):
    book.study(study, "print(1)")
    partial = book.write(f"build/pages/.{study}.partial.ipynb", "{}")
    pages.accept(study, partial, {
        "study": study, "state": "ok", "key": keys.page_key(study, {}), "parameters": {},
        "profile": "quick", "published": False})


def test_help_loads_nothing_heavy():
    for args in (["--help"], ["run", "--help"], []):
        output, loaded = command(*args)
        assert loaded == "0 []" and "usage: labbook" in output


def test_a_run_of_five_studies_with_nothing_to_do_is_light(book):
    for study in "abcde":
        up_to_date(book, study)
        for number in range(200):
            book.write(f"../records/here/{study}/clients/{number}.parquet", "x" * 1000)
        note = pages.note(study)
        pages.write_note(study, note | {"key": keys.page_key(study, {})})
    _, loaded = command("run")
    assert loaded == "0 []"
    assert command("status")[1] == "0 []"


def test_the_usage_of_publish_has_what_excludes_each_other_in_one_group(capsys):
    with pytest.raises(SystemExit):
        cli.main(["publish", "--help"])
    usage = " ".join(capsys.readouterr().out.split("STUDY\n")[0].split())
    assert "[--replace EXPERIMENT | --add | --carry-over WHY | --judge] [--set MACHINE]" in usage


@pytest.mark.parametrize("words, profile", [([], "full"), (["--profile", "quick"], "quick")])
def test_the_full_profile_is_published_unless_another_is_named(monkeypatch, words, profile):
    from labbook.pipeline.publishing import publish

    got = []
    monkeypatch.setattr(publish, "publish", lambda study, profile, *_: got.append(profile) or [])
    assert cli.main(["publish", "a", *words]) == 0 and got == [profile]


def test_help_has_each_exit_code():
    text = cli.parser().format_help()
    for code in (0, 1, run.WRONG_INPUT_CODE, run.PAUSED_CODE, 130):
        assert re.search(rf"^  {code} ", text, re.M)
    assert re.search(r"^  130  Ctrl-C; 143 SIGTERM; 129 ", text, re.M)


@pytest.mark.parametrize("args, code, message", [
    (["run", "nothing"], 2, "no study 'nothing'"),
    (["run", "-p", "repeatz", "1"], 2, "did you mean 'repeats'"),
    (["run", "--environment", "gone.yml"], 2, "gone.yml"),
    (["claims", "nothing"], 2, "no study"),
    (["publish", "nothing"], 2, "no study"),
    (["publish", "nothing", "--carry-over", " "], 2, "--carry-over: no reason"),
    (["publish", "nothing", "--judge", "--set", "amd"], 2, "--set: goes with --carry-over"),
    (["publish", "nothing", "--without", "speed"], 2, "--without: goes with --carry-over"),
    (["publish", "nothing", "--further", "clients"], 2, "--further: goes with --add"),
    (["publish", "nothing", "--judge", "--profile", "quick"], 2, "--profile: selects a run to publish, and --judge"),
    (["publish", "nothing", "--carry-over", "comments only", "--profile", "full"], 2, "--profile: selects a run"),
    (["install", "--tests", "--fleet", "f.yml"], 2, "--tests: a fleet's machines only measure"),
    (["doctor", "--fleet", "f.yml", "--environment", "environments/hosts.yml"], 2,
     "--environment: a fleet's machines have environments of their own"),
    (["doctor", "--fleet", "f.yml", "-v"], 2, "--verbose: of a fleet's machines only what they lack is shown"),
    (["up", "nothing"], 2, "no study"),
])
def test_wrong_input_is_one_message_and_code_2(book, capsys, args, code, message):
    book.study("cms", "1")
    assert cli.main(args) == code
    output = capsys.readouterr().err
    assert message in output and "Traceback" not in output


@pytest.mark.parametrize("words, expected", [
    (["run", "cms", "--profile", "full", "wan"], dict(studies=["cms", "wan"], profile="full")),
    (["claims", "--verdict", "open", "wan"], dict(studies=["wan"], verdict=["open"])),
    (["rows", "cms", "--series", "disk", "writes", "clients=90"], dict(experiment="writes", values=["clients=90"])),
    (["rows", "cms", "writes", "--series", "disk", "clients=90"], dict(experiment="writes", values=["clients=90"])),
    (["show", "cms", "writes", "-o", "f.html", "repeat=1"], dict(values=["repeat=1"], output="f.html")),
])
def test_studies_and_values_may_stand_behind_options(words, expected):
    given = vars(cli._parsed(cli.parser(), words))
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize("args", [["run", "--for", "soon"], ["run", "--profile", "slow"], ["fly"], ["run", "--fast", "wan"],
                                  ["status", "wan"]])
def test_words_that_the_command_line_does_not_know_end_with_code_2(args, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(args)
    assert end.value.code == 2


@pytest.mark.parametrize("error, code, message", [
    (InputError("wrong", file="a.yml", key="b"), 2, "a.yml: b: wrong"),
    (LabError("no host", remedy="Type this"), 1, "no host. Type this"),
    (ZeroDivisionError("oh"), 1, "unexpected ZeroDivisionError: oh"),
    (KeyboardInterrupt(), 130, "interrupted"),
])
def test_errors_are_one_message_and_the_traceback_of_what_failed_goes_to_a_log(
        book, capsys, monkeypatch, error, code, message):
    def fail(_):
        raise error
    monkeypatch.setattr(book_commands, "status", fail)
    assert cli.main(["status"]) == code
    output = capsys.readouterr().err
    assert message in output and "Traceback" not in output
    logs = list((book.root / "build/logs").glob("status-*.txt"))
    assert len(logs) == (code == 1)
    assert all("Traceback" in log.read_text() for log in logs)


def test_what_run_is_asked_reaches_the_press(book, monkeypatch):
    got = {}
    monkeypatch.setattr(run, "run", lambda names, options: got.update(names=names, options=options) or 3)
    args = ["run", "a", "--profile", "full", "-p", "x", "[1]", "--remeasure", "--for", "1m"]
    earliest = time.time() + 60
    assert cli.main(args) == 3
    options = got["options"]
    assert got["names"] == ["a"] and options.given == (("x", "[1]"),) and options.profile == "full"
    assert options.remeasure and not options.force and not options.published
    assert earliest <= options.until <= time.time() + 60
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    assert cli.main(["run", "a", "--force"]) == 3 and got["options"].published and got["options"].force


@pytest.mark.parametrize("args, which", [
    ([], None), (["--until-decided"], "all"), (["--until-decided", "--claims", "headline"], "headline")])
def test_which_claims_are_asked_reaches_the_press(monkeypatch, args, which):
    got = []
    monkeypatch.setattr(run, "run", lambda names, given: got.append(given.which) or 0)
    assert cli.main(["run", *args]) == 0 and got == [which]


@pytest.mark.parametrize("args, published, message", [
    (["--claims", "paper"], "", "--claims: needs --until-decided"),
    (["--until-decided"], "1", "--until-decided: .*without LABBOOK_PUBLISHED"),
    (["-p", "repeats", "3"], "1", "-p: published results are shown as they were measured"),
    (["--environment", "environments/hosts.yml"], "1", "--environment: published results"),
    (["--remeasure"], "1", "--remeasure: published results"),
    (["--profile", "full", "--dry-run"], "1", "--profile: published results"),
    (["--dry-run"], "1", "--dry-run: published results")])
def test_options_that_do_not_go_together_are_refused(monkeypatch, capsys, args, published, message):
    monkeypatch.setenv("LABBOOK_PUBLISHED", published)
    assert cli.main(["run", *args]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_status_shows_the_state_of_an_ask_on_demand(book, capsys):
    book.study("cms", "1")
    partial = book.write("build/pages/.cms.partial.ipynb", "{}")
    board = {"which": "all", "claims": ["a", "b"], "asked": 2, "decided": 1, "closed": [], "now": {}, "at_s": 0, "seconds": 9,
             "open": [{"id": "b", "statement": "s", "repeats": 6, "needed": 12, "seconds": 240.0, "late": True}]}
    pages.accept("cms", partial, {"study": "cms", "state": "ok", "key": keys.page_key("cms", {}), "parameters": {},
                                  "profile": "quick", "published": False, "board": board})
    assert cli.main(["status"]) == 0
    assert "1/2 decided" in (output := capsys.readouterr().out) and "open: b" not in output
    assert cli.main(["status", "-v"]) == 0
    assert ("cms: 1 of 2 claims decided\n  open: b, 6 repeats, needs about 12 repeats, about 4 min, longer than the time "
            "limit" in capsys.readouterr().out)


def test_claims_for_people_and_programs(book, capsys):
    book.study("cms", "1")
    book.write("data/papers/cms/claims.yml", """- id: faster
  section: speed
  statement: A is faster.
  source: section 1
  paper: {order: A first}
  rule: {name: not_testable, reason: no A}
""")
    assert cli.main(["claims"]) == 0
    assert capsys.readouterr().out.startswith("claims  not judged yet  all\ncms     1               1\n\n`labbook claims -v`")
    assert cli.main(["claims", "-v"]) == 0
    assert "cms: 1 not judged yet\n     not judged yet    faster" in capsys.readouterr().out
    assert cli.main(["claims", "cms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == "faster"


@pytest.mark.parametrize("args", [["run", "wan"], ["claims", "wan"], ["publish", "wan"]])
def test_a_study_without_a_notebook_is_incomplete(book, capsys, args):
    book.study("cms", "1")
    book.write("data/papers/wan/claims.yml", "[]")
    assert cli.main(args) == 2
    assert ("study 'wan' is incomplete: data/papers/wan exists, notebooks/wan.ipynb and "
            "lib/labbook/papers/wan are missing") in capsys.readouterr().err


def test_a_lab_can_be_looked_at_before_there_is_a_notebook(book, monkeypatch, capsys):
    from labbook.pipeline.setup import doctor
    book.write("data/papers/wan/lab.yml", "sites: [lan]\nhosts: {db: {site: lan, role: db}}\n")
    monkeypatch.setattr(run, "check_needs", lambda jobs, *_: print("looked at", *jobs))
    monkeypatch.setattr(run, "sweep_labs", lambda: None)
    monkeypatch.setattr("labbook.lab.Lab.up", lambda *_, **__: pytest.fail("up"))
    with pytest.raises(BaseException, match="up"):
        cli.main(["up", "wan"])
    assert "looked at wan" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "examine", lambda *_: [])
    assert cli.main(["doctor", "wan"]) == 0
    book.write("notebooks/cms.ipynb", "{}")
    assert cli.main(["up", "cms"]) == 2
    assert "lab.yml: no such file" in capsys.readouterr().err


def test_a_library_of_another_checkout_is_refused(book, monkeypatch, capsys):
    book.write("lib/labbook/__init__.py", "")
    assert cli.main(["status"]) == 0        # LABBOOK_ROOT names the book on purpose
    monkeypatch.delenv("LABBOOK_ROOT")
    monkeypatch.chdir(book.root)
    assert cli.main(["status"]) == 2
    assert "this checkout contains the library" in capsys.readouterr().err


def test_the_command_of_a_copied_checkout_is_refused_wherever_it_is_typed(book, monkeypatch, capsys):
    """Its first line names the Python of the checkout that it was copied from."""
    book.write("lib/labbook/__init__.py", "")
    monkeypatch.delenv("LABBOOK_ROOT")
    monkeypatch.setattr(sys, "argv", [str(book.root / ".venv/bin/labbook"), "status"])
    monkeypatch.chdir(book.root.parent)
    assert cli.main(["status"]) == 2
    assert f"{book.root}/lib/bootstrap.sh" in capsys.readouterr().err


def standing(lab_id, study, *hosts, keep=True, checkout="/elsewhere"):
    return SimpleNamespace(id=lab_id, study=study, hosts=hosts, keep=keep,
                           ssh_config=Path("/x") / lab_id, checkout=str(checkout))


def test_a_host_is_found_by_name_or_lab_and_name():
    one, other = standing("1", "cms", "db", "client"), standing("2", "wan", "db")
    find = lab_commands._find_host
    assert find([one, other], "client") == (one, "client")
    assert find([one, other], "wan/db") == (other, "db")
    assert find([one, other], "1/db") == (one, "db")
    with pytest.raises(InputError, match="1/db, 2/db"):
        find([one, other], "db")
    running = standing("3", "", "db", keep=False)
    assert find([running, one], "db") == (one, "db") and find([running], "db") == (running, "db")
    assert find([running, one], "3/db") == (running, "db")
    with pytest.raises(InputError, match="no such host.*1/client"):
        find([one], "web")
    with pytest.raises(LabError, match="labbook up"):
        find([], "db")


def test_labs_of_this_checkout_go_before_those_of_others():
    from labbook import paths

    other, own = standing("1", "cms", "db"), standing("2", "cms", "db", checkout=paths.checkout())
    assert lab_commands._find_host([other, own], "db") == (own, "db")
    assert lab_commands._find_host([other, own], "1/db") == (other, "db")


def test_down_asks_which_of_several_labs():
    from labbook import paths

    here = paths.checkout()
    kept, used = standing("1", "cms", "db", checkout=here), standing("2", "wan", "db", keep=False, checkout=here)
    which = lab_commands._to_take_down
    assert which([kept, used], "wan") is used and which([kept, used], "1") is kept
    assert which([kept, used], None) is kept        # not the one that a run is using
    assert which([used], None) is None and which([], None) is None
    with pytest.raises(InputError, match="1, 3"):
        which([kept, standing("3", "cms", "db", checkout=here)], None)
    with pytest.raises(InputError, match="no such lab.*1, 2"):
        which([kept, used], "3")


def test_the_host_of_the_help_of_up_is_one_of_its_study(capsys):
    import re

    from labbook import paths
    from labbook.lab import LabDescription

    with pytest.raises(SystemExit):
        cli.main(["up", "--help"])
    study, host = re.search(r"labbook up (\w+)\s+labbook ssh (\w+)", capsys.readouterr().out).groups()
    assert LabDescription.load(paths.papers(study) / "lab.yml").host(host).name == host
