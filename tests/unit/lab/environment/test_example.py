"""environments/hosts.example.yml: all that may be written down, and nothing else."""

import re

import pytest
import yaml

from labbook.lab.description import LabDescription
from labbook.lab.environment.environment import Environment
from labbook.lab.environment.schema import ALLOW, DEFAULTS, HOST, JUMP, SCHEMA
from labbook.lab.remote.assign import match
from labbook.paths import checkout

FILE = checkout() / "environments" / "hosts.example.yml"


@pytest.fixture(scope="module")
def example():
    return Environment.load(FILE, keys=False)


def keys(text, indent):
    return set(re.findall(rf"^ {{{indent}}}([a-z_]+):", text, re.M))


def test_every_key_is_in_it_and_every_key_in_it_is_one():
    top, hosts, jumps = re.split(r"^(?:hosts|jumps):.*\n", FILE.read_text(), flags=re.M)
    assert keys(top, 0) | {"hosts", "jumps"} == set(SCHEMA["properties"])
    assert keys(hosts, 4) <= set(HOST["properties"]) == keys(hosts, 4) | set(DEFAULTS)
    assert keys(jumps, 4) <= set(JUMP["properties"])
    assert all(re.search(rf"#   {kind} +[a-z]", top) for kind in ALLOW)


def test_each_key_is_explained_where_it_first_stands():
    seen, known = {"provider", "hosts"}, {*SCHEMA["properties"], *HOST["properties"]}
    for line in FILE.read_text().splitlines():
        key = re.match(r" *([a-z_]+):", line)
        if key and key[1] in known - seen:
            seen.add(key[1])
            assert "#" in line, line


def test_its_defaults_are_the_defaults(example):
    text = FILE.read_text()
    for line in ("port: 22 ", "python: python3 ", "site: lan ", "known_hosts: ~/.ssh/known_hosts "):
        text = re.sub(rf"^{re.escape(line)}.*$", "", text, flags=re.M)
    assert Environment.parse(yaml.safe_load(text), file=FILE, keys=False) == example


def test_the_example_has_hosts_for_the_paper_of_this_book(example):
    lab = LabDescription.load(checkout() / "data/papers/cms_scalability/lab.yml").of()
    matched = {name: real.name for name, real in match(lab, example).items()}
    assert matched["small"] == matched["large"] == matched["idle"] == "rack1"
    assert matched["client"] == "desk" and len({matched[f"node{i}"] for i in range(1, 6)}) == 5
