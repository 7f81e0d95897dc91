"""Code that is edited while a study is measured."""

import pytest
from study_stand_ins import operations

from labbook.errors import InputError
from labbook.study.records import code_files
from labbook.study.records.fingerprint import LIBRARY, Fingerprint, measuring_files


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of one module."""
    folder = tmp_path / "labbook"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "load.py").write_text("X = 1\n")
    monkeypatch.setattr(code_files, "LIBRARY", folder)
    return folder


def test_a_point_is_refused_once_the_code_is_another(make, labs, library, monkeypatch):
    study, _ = make()
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda study: Fingerprint("first"))
    monkeypatch.setattr(code_files, "fingerprint", lambda study: Fingerprint("second"))
    point = study.experiments["speed"].points()[0]
    assert study.fingerprint.code == "first" and study.attempt(point)
    (library / "load.py").write_text("X = 23\n")
    with pytest.raises(InputError, match="demo: the code that measures has changed.*no measured point is lost"):
        study.attempt(point)


def test_other_files_and_other_words_refuse_nothing(make, labs, library, monkeypatch):
    study, _ = make()
    calls = []
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda study: Fingerprint("first"))
    monkeypatch.setattr(code_files, "fingerprint", lambda study: calls.append(study) or Fingerprint("first"))
    point = study.experiments["speed"].points()[0]
    assert study.fingerprint.code == "first"
    (library / "__pycache__/load.pyc").write_text("compiled")
    study.attempt(point)
    assert calls == []
    (library / "load.py").write_text("X = 1   # a comment\n")
    study.attempt(point)
    study.attempt(point)
    assert calls == ["demo"], "looked at once for each change"


def test_a_file_that_is_gone_is_a_change(make, labs, library, monkeypatch):
    study, _ = make()
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda study: Fingerprint("first"))
    monkeypatch.setattr(code_files, "fingerprint", lambda study: Fingerprint("second"))
    assert study.fingerprint
    (library / "load.py").unlink()
    with pytest.raises(InputError, match="has changed"):
        study.attempt(study.experiments["speed"].points()[0])


def test_code_that_is_edited_during_the_first_point_of_a_first_run_refuses_the_second(root, make):
    """A run without records reads the fingerprint of none."""
    lab_yml = root / "data/papers/demo/lab.yml"
    study, speed = make()
    left = iter(speed.remaining())
    with study.attempt(next(left)) as attempt:
        assert attempt.lab
        lab_yml.write_text(lab_yml.read_text().replace("role: db", "role: store"))
        attempt.record(operations())
    with pytest.raises(InputError, match="demo: the code that measures has changed"):
        study.attempt(next(left))
    recorded = study.records("speed").meta(speed.points()[0].key)["fingerprint"]
    assert recorded == study.fingerprint.code != make()[0].fingerprint.code, "the record is of the code that measured it"


@pytest.mark.parametrize("edited, refused", [("load.py", True), ("figure.py", False)])
def test_a_module_that_was_edited_after_its_import_measures_nothing(edited, refused, make, labs, library, monkeypatch):
    """A new Study in the same kernel takes a fingerprint of the edited file, and goes on with the module it has."""
    (library / "figure.py").write_text("X = 1\n")
    monkeypatch.setattr(code_files, "AT_IMPORT", code_files._state(code_files._library()))
    monkeypatch.setattr(code_files, "measuring_files", lambda study: {str(library / "load.py")})
    (library / edited).write_text("X = 23\n")
    study, _ = make()
    point = study.experiments["speed"].points()[0]
    if not refused:
        assert study.attempt(point)
        return
    with pytest.raises(InputError, match="load.py has changed since this kernel imported it.*restart of the kernel"):
        study.attempt(point)


def test_the_files_that_measure_are_those_that_a_notebook_leads_to():
    found = measuring_files("cms_scalability")
    assert {str(LIBRARY / "papers/cms_scalability/experiments.py"), str(LIBRARY / "study/attempt.py")} <= found
    assert not [path for path in found if "/figures" in path or "/pipeline/" in path]
