"""Code that is edited while a study is measured."""

import pytest
from study_stand_ins import operations

from labbook.errors import InputError
from labbook.study.records import code_files
from labbook.study.records.fingerprint import Fingerprint


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
