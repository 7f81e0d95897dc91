"""Clouds that an environment file names: what may stand there, and which files of credentials do."""

import copy
from pathlib import Path

import pytest
import yaml

from labbook.errors import InputError
from labbook.lab.environment import clouds
from labbook.lab.environment.clouds import OwnCloud, endpoints
from labbook.lab.environment.environment import Environment
from labbook.lab.environment.redact import redactor
from labbook.paths import checkout
from labbook.study.records import provenance

EXAMPLE = checkout() / "environments" / "cloud.example.yml"
FILE = {"provider": "namespaces", "clouds": {
    "older": {"kind": "ec2", "endpoint": "https://euca.example.org:8773/", "credentials": "~/aws",
              "profile": "labs"},
    "newer": {"kind": "openstack", "credentials": "~/clouds.yaml", "profile": "here"},
}}
SECRET = "hush-hush"
CLOUDS = f"clouds: {{here: {{auth: {{auth_url: 'https://keys.example.org/v3', password: {SECRET}}}}}}}\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "aws").write_text(f"[labs]\naws_access_key_id = a\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "clouds.yaml").write_text(CLOUDS)
    for name in ("aws", "clouds.yaml"):
        (tmp_path / name).chmod(0o600)
    return tmp_path


def changed(**changes):
    """The file with `older__endpoint=...`; None takes a key away."""
    data = copy.deepcopy(FILE)
    for key, value in changes.items():
        cloud, what = key.split("__")
        if value is None:
            del data["clouds"][cloud][what]
        else:
            data["clouds"][cloud][what] = value
    return data


def parse(data=FILE, keys=True):
    return Environment.parse(data, file="clouds.yml", keys=keys)


def test_they_are_parsed_with_paths_of_this_machine(home):
    older, newer = parse().clouds
    assert (older.name, older.kind, older.credentials, older.user) == (
        "older", "ec2", str(home / "aws"), "root")
    assert newer.profile == "here" and newer.key("profile") == "clouds.newer.profile"
    assert OwnCloud(**older.facts()) == older


def test_hosts_of_ones_own_may_have_them_beside(home):
    data = yaml.safe_load((checkout() / "environments/hosts.example.yml").read_text())
    parsed = Environment.parse({**data, "clouds": FILE["clouds"]}, file="x.yml", keys=False)
    assert len(parsed.clouds) == 2 and parsed.hosts
    assert Environment.parse(data, file="x.yml", keys=False).clouds == ()


WRONG = {
    "kind": (dict(older__kind="azure"), "clouds.older.kind", "ec2, openstack"),
    "no kind": (dict(older__kind=None), "clouds.older", "missing: kind"),
    "no profile": (dict(newer__profile=None), "clouds.newer", "missing: profile"),
    "a key of the other kind": (dict(newer__endpoint="https://x/"), "clouds.newer.endpoint", "unknown key"),
    "a near key": (dict(older__endpont="https://x/"), "clouds.older.endpont", "did you mean 'endpoint'"),
    "no way": (dict(older__endpoint=None), "clouds.older.endpoint", "neither an endpoint nor a region"),
    "no URL": (dict(older__endpoint="euca:8773"), "clouds.older.endpoint", "http:// or https://"),
    "a user in it": (dict(older__endpoint=f"https://me:{SECRET}@x/"), "clouds.older.endpoint",
                     "no secret belongs"),
    "a relative path": (dict(older__credentials="aws"), "clouds.older.credentials", "absolute path"),
    "a password": (dict(newer__password=SECRET), "clouds.newer.password", "no secret belongs"),
    "a secret": (dict(older__aws_secret_access_key=SECRET), "clouds.older.aws_secret_access_key",
                 "no secret belongs"),
    "images": (dict(older__images=["x"]), "clouds.older.images", "not of type object"),
}


@pytest.mark.parametrize("changes, key, expected", WRONG.values(), ids=WRONG)
def test_what_is_wrong_names_file_key_and_what_is_allowed(changes, key, expected):
    with pytest.raises(InputError) as error:
        parse(changed(**changes), keys=False)
    text = str(error.value)
    assert text.startswith(f"clouds.yml: {key}: ") and expected in text and SECRET not in text, text


@pytest.mark.parametrize("wrong, expected", [
    ({"Older": {}}, "clouds.Older"), ([], "clouds: "), ({2: {"kind": "ec2", "credentials": "/x"}}, "clouds.2")])
def test_names_and_shape(wrong, expected):
    with pytest.raises(InputError, match=f"clouds.yml: {expected}"):
        parse({"provider": "namespaces", "clouds": wrong}, keys=False)


def spoilt(name, text=None, mode=0o600):
    def spoil(home):
        if text is None and mode == 0o600:
            (home / name).unlink()
            return
        if text is not None:
            (home / name).write_bytes(text)
        (home / name).chmod(mode)
    return spoil


@pytest.mark.parametrize("spoil, key, expected", [
    (spoilt("aws"), "clouds.older.credentials", "no such file"),
    (spoilt("aws", mode=0o640), "clouds.older.credentials", "others may read it (mode 0640)"),
    (spoilt("aws", b"[labz]\naws_access_key_id = a\n"), "clouds.older.profile", "did you mean 'labz'"),
    (spoilt("aws", b"no section"), "clouds.older.credentials", "cannot be read"),
    (spoilt("aws", b"\xff\xfe\xff"), "clouds.older.credentials", "cannot be read"),
    (spoilt("clouds.yaml", b"clouds: {there: {}}"), "clouds.newer.profile", "allowed: there"),
    (spoilt("clouds.yaml", b"[here]"), "clouds.newer.credentials", "cannot be read"),
    (spoilt("clouds.yaml", b"clouds: [here]"), "clouds.newer.credentials", "cannot be read"),
    (spoilt("clouds.yaml", CLOUDS.encode(), 0o644), "clouds.newer.credentials", "chmod 600"),
    (spoilt("secure.yaml", b"clouds: {here: {auth: {password: p}}}", 0o644), "clouds.newer.credentials",
     "secure.yaml: others may read it (mode 0644)"),
])
def test_files_of_credentials_that_cannot_be_used(home, spoil, key, expected):
    spoil(home)
    with pytest.raises(InputError) as error:
        parse()
    text = str(error.value)
    assert text.startswith(f"clouds.yml: {key}: ") and expected in text and SECRET not in text, text


def test_a_file_of_certificates_is_there_and_no_page_names_it(home):
    given = changed(older__certificates="~/authorities.pem")
    with pytest.raises(InputError, match="clouds.yml: clouds.older.certificates: .*authorities.pem: no such file"):
        parse(given)
    (home / "authorities.pem").write_text("")
    hide = redactor(parse(given))
    assert hide(f"cannot read {home}/authorities.pem") == "cannot read CERTIFICATES"


def test_a_clouds_yaml_without_secrets_may_be_read_by_others(home):
    (home / "clouds.yaml").write_text("clouds: {here: {auth: {auth_url: 'https://x/', username: u}}}")
    (home / "clouds.yaml").chmod(0o644)
    assert parse().clouds


def test_files_are_not_looked_at_for_a_page():
    assert len(parse(keys=False).clouds) == 2


def test_pages_and_records_have_names_and_no_addresses(home):
    hide = redactor(parse())
    text = f"at https://euca.example.org:8773/x and https://keys.example.org/v3 with {home}/aws"
    assert hide(text) == "at https://older:8773/x and https://newer/v3 with CREDENTIALS"
    assert endpoints(parse(keys=False).clouds[1]) == ["keys.example.org"]
    for text in ("[here]", "clouds: [here]", "{}"):
        (home / "clouds.yaml").write_text(text)
        assert endpoints(parse(keys=False).clouds[1]) == []
    (home / "clouds.yaml").unlink()
    assert endpoints(parse(keys=False).clouds[1]) == []


def test_records_of_another_cloud_are_of_another_place(home, tmp_path):
    def place(data):
        file = tmp_path / "clouds.yml"
        file.write_text(yaml.safe_dump(data))
        return provenance.place(file)

    mine = place(FILE)
    assert mine.startswith("clouds-") and place(FILE) == mine
    assert place(changed(older__endpoint="https://other.example.org/")) != mine
    assert place(changed(older__credentials="~/other")) == mine     # how it is reached
    for other in (changed(older__images={"guest": "emi-2"}), changed(older__flavors={"m1.small": "c1"}),
                  changed(older__zone="b"), changed(older__network="n2")):
        assert place(other) != mine
    assert place({"provider": "namespaces"}) == provenance.machine_id()


def test_the_example_has_every_key_each_with_its_meaning():
    text = EXAMPLE.read_text()
    environment = Environment.load(EXAMPLE, keys=False)
    assert [cloud.kind for cloud in environment.clouds] == ["ec2", "openstack"]
    seen = set()
    for line in text.splitlines():
        key = line.strip().partition(":")[0]
        if line.startswith("    ") and key in clouds.KINDS["ec2"]["properties"] and key not in seen:
            seen.add(key)
            assert "#" in line, line
    assert seen == set(clouds.KINDS["ec2"]["properties"])


def test_the_example_holds_no_real_place():
    assert "example.org" in EXAMPLE.read_text() and not Path(EXAMPLE).read_text().count("amazonaws")
