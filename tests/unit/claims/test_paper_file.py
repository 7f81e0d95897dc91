"""What a paper.yml may have."""

import pytest

from labbook import paths
from labbook.claims import paper_file
from labbook.errors import InputError


@pytest.mark.parametrize("text, message", [
    ("", "paper.yml: .*object"), ("year: 2010\n", "paper.yml: .*title"), ("title: a\nnames: [x]\n", "paper.yml: names: "),
    ("title: a\nauthors: [{romanised: B}]\n", "paper.yml: authors.0: .*name"),
    ("title: a\nsetup: [{what: cores, paper: 4, ours: '2'}]\n", "paper.yml: setup.0: .*matters")])
def test_what_is_wrong_is_named_with_its_key(text, message, tmp_path):
    file = tmp_path / "paper.yml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        paper_file.load(file)


def test_all_papers_and_one_with_a_title_alone_are_right(tmp_path):
    file = tmp_path / "paper.yml"
    file.write_text("title: 題\nnames: null\n")
    assert paper_file.load(file)["title"] == "題"
    assert all(paper_file.load(one)["setup"] for one in paths.papers("ceph_mds").parent.glob("*/paper.yml"))
