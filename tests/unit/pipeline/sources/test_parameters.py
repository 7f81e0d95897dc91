import pytest

from labbook.errors import InputError
from labbook.pipeline.sources import parameters


@pytest.fixture
def study(book):
    book.study("cms", full="clients: [1, 50]\nmargin: 2\n")
    return "cms"


def test_the_parameters_cell_is_read_without_running_it(study):
    assert parameters.declared(study) == {
        "environment": "environments/local.yml", "clients": [1, 10], "repeats": 2, "margin": 1.5,
        "store": "mysql"}


@pytest.mark.parametrize("given, chosen", [
    ([], {}),
    ([("repeats", "3")], {"repeats": 3}),
    ([("repeats", "2")], {}),                       # the default: the same page
    ([("clients", "[5, 6]")], {"clients": [5, 6]}),
    ([("margin", "2")], {"margin": 2.0}),
    ([("margin", "1e-3")], {"margin": 0.001}),      # text in YAML 1.1
    ([("store", "0.7")], {"store": "0.7"}),
    ([("store", "on")], {"store": "on"}),
    ([("repeats", "3"), ("repeats", "4")], {"repeats": 4}),
])
def test_values_from_the_command_line(study, given, chosen):
    assert parameters.chosen(study, given=given) == chosen


def test_the_full_profile_and_what_is_given_over_it(study):
    assert parameters.chosen(study, "full") == {"clients": [1, 50], "margin": 2.0}
    assert parameters.chosen(study, "full", [("margin", "3")])["margin"] == 3.0


@pytest.mark.parametrize("name, text, key, message", [
    ("repeat", "3", "repeat", "did you mean 'repeats'"),
    ("repeats", "3.5", "repeats", "int, such as 2"),
    ("repeats", "true", "repeats", "int"),
    ("repeats", "many", "repeats", "int"),
    ("repeats", "[1", "repeats", "not YAML"),
    ("clients", "5", "clients", "list of int, such as [1, 10]"),
    ("clients", "[1, x]", "clients", "list of int"),
    ("clients", "[1.5]", "clients", "list of int"),
    ("margin", "true", "margin", "float"),
])
def test_wrong_names_and_types_name_notebook_key_and_allowed(study, name, text, key, message):
    with pytest.raises(InputError) as error:
        parameters.chosen(study, given=[(name, text)])
    assert error.value.key == key
    assert message in str(error.value)
    if "YAML" not in message:
        assert "cms.ipynb" in str(error.value)


@pytest.mark.parametrize("full, message", [
    ("repeatz: 1\n", "repeatz"),
    ("clients: [a]\n", "list of int"),
    ("- 1\n", "not a mapping"),
    ("repeats: 1\nrepeats: 2\n", "duplicate"),
])
def test_a_wrong_full_profile_names_its_file(book, full, message):
    book.study("cms", full=full)
    with pytest.raises(InputError, match="full.yml") as error:
        parameters.chosen("cms", "full")
    assert message in str(error.value)


def test_a_study_without_parameters_takes_none(book):
    book.study("plain", parameters="")
    with pytest.raises(InputError, match="no such parameter"):
        parameters.chosen("plain", given=[("x", "1")])


def test_a_notebook_without_a_cell_of_parameters_is_refused(book):
    path = book.study("plain", parameters="repeats = 1")
    path.write_text(path.read_text().replace('"parameters"', '"other"'))
    with pytest.raises(InputError, match="plain.ipynb: no cell is tagged 'parameters'"):
        parameters.chosen("plain")


GROUPED = """environment = "environments/local.yml"
response = dict(rtt_ms=[0, 100], seconds=1.5,   # two lines
                repeats=3)
kill = {"victims": ["db1"], "repeats": 0, "load": dict(clients=5)}
users = 10
"""
RESPONSE, KILL = ({"rtt_ms": [0, 100], "seconds": 1.5, "repeats": 3},
                  {"victims": ["db1"], "repeats": 0, "load": {"clients": 5}})


@pytest.fixture
def grouped(book):
    book.study("wan", parameters=GROUPED, full=f"response: {RESPONSE | {'repeats': 9}}\nusers: 20\n")
    return "wan"


def test_a_group_is_a_dict_of_an_experiments_parameters(grouped):
    assert parameters.declared(grouped) == {"environment": "environments/local.yml", "users": 10,
                                            "response": RESPONSE, "kill": KILL}
    assert parameters.flat(KILL) == {"victims": ["db1"], "repeats": 0, "load.clients": 5}


@pytest.mark.parametrize("given, chosen", [
    ([("response.repeats", "6")], {"response": RESPONSE | {"repeats": 6}}),
    ([("response.repeats", "3")], {}),                  # the default: the same page
    ([("response.repeats", "6"), ("response.seconds", "2"), ("users", "4")],
     {"response": RESPONSE | {"repeats": 6, "seconds": 2.0}, "users": 4}),
    ([("kill.load.clients", "8")], {"kill": KILL | {"load": {"clients": 8}}}),
    ([("kill", "{repeats: 1, victims: [db2], load: {clients: 5}}")],
     {"kill": {"victims": ["db2"], "repeats": 1, "load": {"clients": 5}}}),
])
def test_a_changed_group_is_injected_as_a_whole(grouped, given, chosen):
    assert parameters.chosen(grouped, given=given) == chosen


def test_one_entry_is_set_over_the_full_profile(grouped):
    assert parameters.chosen(grouped, "full", [("response.rtt_ms", "[5]")]) == {
        "response": RESPONSE | {"repeats": 9, "rtt_ms": [5]}, "users": 20}
    assert parameters.declared(grouped)["response"] == RESPONSE


@pytest.mark.parametrize("name, text, key, message", [
    ("response.repeat", "3", "response.repeat", "did you mean 'response.repeats'"),
    ("response.repeat", "3", "response.repeat", "allowed: response.repeats, response.rtt_ms"),
    ("respons.repeats", "3", "respons.repeats", "did you mean response.repeats"),
    ("repeats", "3", "repeats", "did you mean response.repeats or kill.repeats?"),
    ("rtt_ms", "[3]", "rtt_ms", "did you mean response.rtt_ms?"),
    ("response.repeats", "many", "response.repeats", "int, such as 3"),
    ("response.rtt_ms", "[]", "response.rtt_ms", "nothing to measure"),
    ("users.repeats", "3", "users", "not a group"),
    ("response", "3", "response", "group, such as"),
    ("response", "{repeats: 3}", "response", "lacks rtt_ms, seconds"),
])
def test_a_wrong_entry_of_a_group_is_named_with_what_is_meant(grouped, name, text, key, message):
    with pytest.raises(InputError) as error:
        parameters.chosen(grouped, given=[(name, text)])
    assert error.value.key == key
    assert message in str(error.value) and "wan.ipynb" in str(error.value)


@pytest.mark.parametrize("full, message", [
    ("response: {repeats: 9}\n", "response: the group is incomplete, it lacks rtt_ms, seconds"),
    ("response: {repeatz: 9}\n", "response.repeatz: no such parameter, did you mean 'response.repeats'"),
    ("response.repeats: 9\n", "response.repeats: entries of a group are nested"),
    ("kill: {victims: [1], repeats: 0, load: {clients: 5}}\n", "kill.victims: .*list of str"),
    ("kill: {victims: [x], repeats: 0, load: {}}\n", "kill.load: the group is incomplete"),
])
def test_a_group_of_the_full_profile_is_complete(book, full, message):
    book.study("wan", parameters=GROUPED, full=full)
    with pytest.raises(InputError, match=f"full.yml: {message}"):
        parameters.chosen("wan", "full")


def test_parameters_of_an_earlier_run_take_what_is_new_from_the_notebook(grouped):
    earlier = {"response": {"repeats": 7}, "users": 3}
    assert parameters.filled(earlier, grouped, "run.json") == {
        "response": RESPONSE | {"repeats": 7}, "users": 3}
    with pytest.raises(InputError, match="run.json: times: no such parameter"):
        parameters.filled({"times": 1}, grouped, "run.json")


def test_groups_reach_the_notebook_as_papermill_injects_them(grouped, book, monkeypatch):
    from labbook.pipeline.executing import pages
    from labbook.pipeline.running import run
    monkeypatch.setattr(run, "check_needs", lambda *_: None)
    monkeypatch.setattr(run, "sweep_labs", lambda: None)
    book.study("wan", "print(response, users)", book.complete, parameters=GROUPED)
    assert run.run(["wan"], run.Options(given=(("response.repeats", "7"),))) == 0
    assert f"{RESPONSE | {'repeats': 7}} 10" in book.printed("wan")
    assert pages.note("wan")["parameters"] == {"response": RESPONSE | {"repeats": 7}}
    assert pages.is_current("wan", run.keys.page_key("wan", {"response": RESPONSE | {"repeats": 7}}))


def test_the_command_of_a_page_sets_the_entries_that_differ_from_its_profile(grouped, book):
    from labbook.pipeline.book import downloads
    note = {"profile": "full", "parameters": parameters.chosen(
        "wan", "full", [("response.rtt_ms", "[5]"), ("users", "10")])}
    assert downloads.command("wan", note) == (
        "labbook run wan --profile full -p response.rtt_ms '[5]' -p users 10")
