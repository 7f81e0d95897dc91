import json

import pytest

from labbook.pipeline.sources import keys


@pytest.fixture
def key(book):
    book.study("cms", "print(1)")
    return lambda parameters=None, **more: keys.page_key("cms", parameters or {}, **more)


def test_a_key_does_not_depend_on_outputs_or_on_the_order_of_parameters(book, key):
    before = key({"a": 1, "b": 2})
    path = book.root / "notebooks/cms.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    notebook["cells"][-1]["execution_count"] = 5
    path.write_text(json.dumps(notebook))
    assert key({"b": 2, "a": 1}) == before
    assert key({"b": 2, "a": 3}) != before


def test_the_environment_that_parameters_name_is_in_the_key(book, key):
    book.write("environments/other.yml", "provider: namespaces\n")
    other = {"environment": "environments/other.yml"}
    before = key(), key(other)
    book.write("environments/other.yml", "provider: namespaces\nstate: /srv/labs\n")
    assert key() == before[0]
    assert key(other) != before[1]


def test_records_of_the_study_are_in_the_key_and_unfinished_ones_are_not(book, key):
    before = key()
    book.write("../records/machine/wan/x/1.parquet", "of another study")
    book.write("../records/machine/cms/x/.tmp-9-1.parquet", "half")
    assert key() == before
    book.write("../records/machine/cms/x/1.failure.json", "{}")
    assert key()["records"] != before["records"] and key()["inputs"] == before["inputs"]


def test_published_pages_look_at_published_content_only(book, key):
    before = key(), key(published=True)
    book.write("data/published/cms/x.parquet", "1")
    assert key() == before[0] and key(published=True) != before[1]
    middle = key(published=True)
    book.write("../records/machine/cms/x/1.parquet", "1")
    assert key(published=True) == middle


def test_the_library_is_in_the_key_up_to_the_floor_that_kernels_can_see(tmp_path, monkeypatch, key):
    library = tmp_path / "labbook"
    for name in ("lab/lab.py", "errors.py", "pipeline/running/run.py", "commands/book.py", "cli.py",
                 "lab/__pycache__/lab.pyc"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("1")
    monkeypatch.setattr(keys, "_LIBRARY", library)
    before = key()
    for above in ("pipeline/running/run.py", "commands/book.py", "cli.py", "lab/__pycache__/lab.pyc"):
        (library / above).write_text("2")
    assert key() == before
    (library / "lab/lab.py").write_text("2")
    assert key() != before


def test_parts_do_not_run_together():
    assert keys._digest(["ab", "c"]) != keys._digest(["a", "bc"])
    assert keys._digest(["1:a"]) != keys._digest(["1", "a"])
