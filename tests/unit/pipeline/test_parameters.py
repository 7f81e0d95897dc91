import pytest

from labbook.errors import InputError
from labbook.pipeline import parameters


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


@pytest.mark.parametrize("name, text, key, said", [
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
def test_wrong_names_and_types_name_notebook_key_and_allowed(study, name, text, key, said):
    with pytest.raises(InputError) as error:
        parameters.chosen(study, given=[(name, text)])
    assert error.value.key == key
    assert said in str(error.value)
    if "YAML" not in said:
        assert "cms.ipynb" in str(error.value)


@pytest.mark.parametrize("full, said", [
    ("repeatz: 1\n", "repeatz"),
    ("clients: [a]\n", "list of int"),
    ("- 1\n", "not a mapping"),
    ("repeats: 1\nrepeats: 2\n", "twice"),
])
def test_a_wrong_full_profile_names_its_file(book, full, said):
    book.study("cms", full=full)
    with pytest.raises(InputError, match="full.yml") as error:
        parameters.chosen("cms", "full")
    assert said in str(error.value)


@pytest.mark.parametrize("code, said", [
    ("n = 1 + len('a')", "n"),
    ("import os", "line 1"),
    ("a, b = 1, 2", "line 1"),
    ("n = ", "line 1"),
])
def test_a_parameters_cell_of_anything_but_literals_is_refused(code, said):
    with pytest.raises(InputError) as error:
        parameters.literals(code, "x.ipynb")
    assert "x.ipynb" in str(error.value) and said in str(error.value)


def test_annotations_comments_negatives_and_none_are_literals():
    code = "a: int = 1  # how many\nb = -0.5\nc = None\nd = {'x': [1]}\ne = (1, 2)"
    assert parameters.literals(code, "") == {"a": 1, "b": -0.5, "c": None, "d": {"x": [1]},
                                             "e": (1, 2)}


def test_an_empty_list_is_refused_where_there_are_values():
    with pytest.raises(InputError, match="nothing to measure.*1, 2"):
        parameters.check({"clients": []}, {"clients": [1, 2]}, "cms.ipynb")


def test_a_mixed_list_takes_the_types_it_shows():
    defaults = {"sizes": [1, "all"]}
    assert parameters.check({"sizes": ["all", 3]}, defaults, "")
    with pytest.raises(InputError, match="list of int or str"):
        parameters.check({"sizes": [2.5]}, defaults, "")


def test_a_study_without_parameters_takes_none(book):
    book.study("plain", parameters="")
    with pytest.raises(InputError, match="no such parameter"):
        parameters.chosen("plain", given=[("x", "1")])
