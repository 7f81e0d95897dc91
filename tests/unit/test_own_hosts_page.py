"""The book's page "On your own hosts": what it tells people to write and to type is what there is."""

import re
import shlex

import pytest
import yaml

from labbook.cli import parser
from labbook.lab.description import LabDescription
from labbook.lab.environment.environment import Environment
from labbook.lab.environment.schema import ALLOW
from labbook.lab.remote.assign import match
from labbook.lab.remote.needs import require_allowed
from labbook.paths import checkout

PAGE = (checkout() / "book/own_hosts.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def commands():
    return [line for block in blocks("bash") for line in block.splitlines()
            if line.startswith("labbook ")]


@pytest.mark.parametrize("line", commands())
def test_its_commands_are_the_command_lines_own(line):
    parser().parse_args(shlex.split(line)[1:])


def test_its_file_is_all_that_the_paper_of_this_book_needs():
    written, = blocks("yaml")
    there = Environment.parse(yaml.safe_load(written), file="hosts.yml", keys=False)
    lab = LabDescription.load(checkout() / "data/papers/cms_scalability/lab.yml").of()
    matched = match(lab, there)
    require_allowed(lab, matched, there)
    assert {real.name for real in matched.values()} == {host.name for host in there.hosts}
    addresses = {place.address for place in (*there.hosts, *there.jumps)}
    assert addresses == set(re.findall(r"(?:192\.0\.2|198\.51\.100)\.\d+", " ".join(blocks("bash"))))


def test_all_that_may_be_allowed_is_reported_with_what_stays_of_it():
    rows = re.findall(r"^\|.*\|$", PAGE, re.M)
    assert all(f"`{kind}`" in PAGE and any(f"(`{kind}`)" in row for row in rows) for kind in ALLOW)


def test_it_is_in_the_book():
    assert "book/own_hosts" in (checkout() / "_toc.yml").read_text()
