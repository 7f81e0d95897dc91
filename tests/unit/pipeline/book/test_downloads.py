"""The end of a page: the command that makes it again, and the points as files."""

import pytest

from labbook.pipeline.book import downloads


@pytest.mark.parametrize("folder, option", [
    ("fleet-rack", "--fleet environments/pool.yml"), ("fleet-spare-1", "--fleet environments/spare-1.yml"),
    ("fleet-elsewhere", "--fleet elsewhere.yml"), ("cluster-my-slurm", "--cluster my-slurm")])
def test_the_command_of_a_page_names_the_fleet_that_measured(book, folder, option):
    book.study("cms", "1")
    book.write("environments/fleet.example.yml", "name: rack\nmachines: {}\n")
    book.write("environments/pool.yml", "name: rack\nmachines: {}\n")
    book.write("environments/spare-1.yml", "machines: {}\n")
    book.write("environments/half.yml", "machines: {")
    note = {"profile": "full", "parameters": {"repeats": 6}, "fleet": folder}
    assert downloads.command("cms", note) == f"labbook run cms {option} --profile full -p repeats 6"
    assert downloads.command("cms", note | {"fleet": None}) == "labbook run cms --profile full -p repeats 6"


def test_a_point_that_was_set_up_otherwise_is_stale_in_the_downloads_as_on_the_page(full, make):
    study, speed = make(repeats=3, setup={"system": ["a", "b"], "clients": [2, 70]}, vary={})
    study.complete()
    assert speed.summary()["stale"].all()
    note = {"environment": None, "published": False, "profile": "full"}
    assert downloads._summaries("demo", note)["speed"]["stale"].all()


def test_staged_files_of_another_page_are_made_again(book):
    staged, made = book.root / "build/stage/_files/cms", []

    def remembered(page, text):
        return downloads.remembered("cms", {"page": page}, staged, lambda: made.append(page) or {"a.csv": text})

    def stage(files):
        staged.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (staged / name).write_bytes(data)

    stage(remembered("P1", b"6 repeats"))
    assert remembered("P1", b"6 repeats") == {"a.csv": b"6 repeats"} and made == ["P1"]
    remembered("P2", b"12 repeats")     # and staging ends before it writes them
    assert remembered("P2", b"12 repeats") == {"a.csv": b"12 repeats"} and made == ["P1", "P2", "P2"]
