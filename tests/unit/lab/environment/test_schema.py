"""Benchmarks that a user has built, as an environment file names them."""

import pytest

from labbook.errors import InputError
from labbook.lab.environment.environment import Environment
from labbook.paths import checkout
from labbook.study.records import provenance

LOCAL = {"provider": "namespaces"}
PROGRAMS = {"unixbench": "/opt/UnixBench", "npb": "/opt/npb/bin"}
HOSTS = checkout() / "environments/hosts.example.yml"


def test_they_are_the_users_own_and_none_by_default():
    assert Environment.parse(LOCAL).programs == {}
    assert Environment.parse({**LOCAL, "programs": PROGRAMS}).programs == PROGRAMS
    assert Environment.load(HOSTS, keys=False).programs == {}


@pytest.mark.parametrize("programs, key, expected", [
    ({"unixbnech": "/opt"}, "programs.unixbnech", "did you mean 'unixbench'"),
    ({"npb": "npb/bin"}, "programs.npb", "an absolute path")])
def test_what_is_wrong_names_file_key_and_what_is_allowed(programs, key, expected):
    with pytest.raises(InputError) as error:
        Environment.parse({**LOCAL, "programs": programs}, file="mine.yml")
    assert str(error.value).startswith(f"mine.yml: {key}: ") and expected in str(error.value)


def test_what_they_give_is_kept_apart_from_what_ours_give(tmp_path):
    files = {}
    for name, text in (("ours", ""), ("npb", "programs: {npb: /x}\n"),
                       ("other", "programs: {npb: /z}\n"),
                       ("both", "programs: {npb: /x, unixbench: /y}\n")):
        files[name] = tmp_path / "mine.yml"
        files[name].write_text(f"provider: namespaces\n{text}")
        files[name] = provenance.place(files[name])
    assert len(set(files.values())) == 4 and files["ours"] == provenance.machine_id()
