"""Keystone's files and secrets, the proxy's health check, the cloud's settings, and the reset of its
content, without a server."""

import configparser
import stat
import struct
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems import find, haproxy, over_several
from labbook.systems.galera.cluster import Galera
from labbook.systems.galera.node import GaleraNode
from labbook.systems.haproxy import HAProxy
from labbook.systems.keystone import state
from labbook.systems.keystone.config import Secrets, configuration, gunicorn
from labbook.systems.keystone.server import Keystone
from labbook.systems.keystone.stack import KeystoneCloud, segments


def host(name, role="db", site="a"):
    return SimpleNamespace(name=name, role=role, site=site, address=f"10.0.0.{len(name)}{name[-1]}",
                           root=PurePosixPath("/srv"), is_remote=False, limits={"memory": 1 << 30})


HOSTS = [host("db1"), host("db2"), host("db3", site="b"), host("lb0", "lb"),
         host("keystone0", "keystone")]


def test_keystones_configuration():
    keystone = Keystone(host("k1"), database_address="10.0.0.9", cache=False)
    parts = configparser.RawConfigParser()
    parts.read_string(configuration(keystone.settings, "10.0.0.1", 5000, keystone.home, "secret"))
    assert parts["database"]["connection"].startswith("mysql+pymysql://labbook:secret@10.0.0.9:3306/keystone")
    assert parts["cache"]["enabled"] == "false" and parts["token"]["provider"] == "fernet"
    places = [value for part in parts.values() for key, value in part.items()
              if key in ("key_repository", "lock_path")]
    assert int(parts["DEFAULT"]["max_db_limit"]) > 100_000  # a reset must see all users
    assert len(places) == 4 and all(place.startswith("/srv/keystone/") for place in places)
    given = {}
    exec(gunicorn("10.0.0.1", 5000, keystone.home, 7), given)
    assert given["workers"] == 7 and given["bind"] == "10.0.0.1:5000" and given["keepalive"] == 0


def test_secrets_are_private_and_never_shown(tmp_path):
    secrets = Secrets()
    secrets.save(tmp_path)
    assert Secrets.load(tmp_path) == secrets != Secrets()
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = repr(secrets) + secrets.digest
    assert not any(value in text for value in vars(secrets).values())
    keystone = Keystone(host("k1"), secrets, database_address="10.0.0.9")
    assert secrets.password not in repr(vars(keystone)) + repr(keystone)
    assert keystone.credentials["password"] == secrets.password


def test_only_the_owner_can_read_a_secret_on_a_host(tmp_path):
    database = SimpleNamespace(address="10.0.0.9", port=3306, password="the-database's")
    keystone = Keystone.over(here_host(tmp_path, "k1"), database)
    keystone.provide()
    keystone.put_files()
    assert stat.S_IMODE(Path(keystone.home).stat().st_mode) == 0o700
    for secret in (*vars(keystone.secrets).values(), database.password):
        modes = [stat.S_IMODE(file.stat().st_mode) for file in Path(keystone.home).rglob("*")
                 if file.is_file() and secret in file.read_text()]
        assert modes == [0o600]


def test_a_keystone_without_a_database_is_refused():
    with pytest.raises(InputError, match="database_address"):
        Keystone(host("k1")).put_files()
    with pytest.raises(InputError, match="servers"):
        HAProxy(host("lb0")).deploy()


def test_the_proxy_logs_in_by_mysqls_protocol():
    """The fields: capabilities, maximum packet, charset, 23 zeros, user, no password."""
    raw = haproxy.packet(1, haproxy.login())
    assert int.from_bytes(raw[:3], "little") == len(raw) - 4 and raw[3] == 1
    capabilities, _, charset = struct.unpack("<IIB", raw[4:13])
    assert capabilities & 0x200 and capabilities & 0x80000 and charset == 33
    assert raw[13:36] == bytes(23)
    assert raw[36:].split(b"\0") == [b"check", b"", b"mysql_native_password", b""]


def test_the_proxys_query_does_not_contain_its_answers():
    text = "\n".join(haproxy.galera_check())
    for answer in ("synced", "unable"):
        assert answer not in haproxy.STATE_QUERY and f"string {answer}" in text
    assert haproxy.STATE_QUERY.encode().hex() in text


@pytest.mark.parametrize("check, state", [("L4OK", "UP"), ("* L4OK", "UP"), ("INI", "unknown"), ("* INI", "unknown"),
                                          ("", "unknown"), ("UNK", "unknown")])
def test_a_server_whose_first_check_still_runs_is_not_checked(check, state, monkeypatch):
    proxy = HAProxy(host("lb0"), servers=["10.0.0.5"])
    monkeypatch.setattr(proxy, "_ask", lambda _: f"# pxname,svname,status,check_status\nmysql,10.0.0.5,UP,{check}\n")
    assert proxy.states() == {"10.0.0.5": state}


@pytest.mark.parametrize("there, filled", [((), False), (("endpoint",), False), (("endpoint", "row"), True)])
def test_a_database_that_was_half_filled_is_filled(there, filled, tmp_path, monkeypatch):
    """It had its tables, and no user: no start ended well."""
    keystone, did = Keystone(host("k1"), database_address="10.0.0.9"), []
    rows = {"endpoint": "information_schema", "row": "FROM keystone.endpoint"}
    monkeypatch.setattr(keystone, "_query", lambda statement: [
        (1,) for name in there if rows[name] in statement])
    monkeypatch.setattr(keystone, "put_files", lambda: None)
    monkeypatch.setattr(keystone, "fill", lambda: did.append("fill"))
    keystone.deploy()
    assert bool(did) is not filled


def test_a_proxy_serves_the_nodes_of_its_own_site_or_else_all():
    def node(name, site):
        return SimpleNamespace(NAME="galera", host=host(name, site=site), address=name, port=3306)
    cluster = SimpleNamespace(nodes=[node("n1", "a"), node("n2", "a"), node("n3", "b")])
    near, none = (HAProxy.over(host("lb0", site=site), cluster) for site in "ac")
    assert near.settings.servers == ["n1", "n2"] and near.settings.check == "galera"
    assert none.settings.servers == ["n1", "n2", "n3"]
    single = node("m1", "b")
    single.NAME = "mariadb"
    plain = HAProxy.over(host("lb0"), single, check_ms=50)
    assert plain.settings.servers == ["m1"] and plain.settings.check == "tcp"
    text = haproxy.configuration(plain.settings, "10.0.0.1", 3306)
    assert "server m1 m1:3306 check" in text and "inter 50ms fall 2 rise 1" in text


def test_the_parts_of_a_cloud_follow_the_roles_of_its_hosts():
    cloud = KeystoneCloud(HOSTS, segments=2, weight=2, cache=False, send_window=512)
    assert cloud.galera.segments == [0, 0, 1] and cloud.galera.weights == [2, 1, 1]
    assert cloud.galera.nodes[2].settings.send_window == 512
    assert cloud.haproxy.settings.servers == [HOSTS[0].address, HOSTS[1].address]
    assert cloud.keystone.settings.database_address == cloud.haproxy.address
    assert cloud.keystone.settings.cache is False and cloud.protocol == "keystone"
    assert cloud.host is HOSTS[4] and cloud.port == 5000
    assert over_several(KeystoneCloud) and find("keystone_cloud") is KeystoneCloud
    assert set(KeystoneCloud.needs().packages) > {"haproxy", "galera-4"}
    assert len(set(KeystoneCloud.NEEDS.packages)) == len(KeystoneCloud.NEEDS.packages)


@pytest.mark.parametrize("hosts, settings, message", [
    (HOSTS[:4], {}, "role: 0 hosts of role keystone"),
    (HOSTS[3:], {}, "role: 0 hosts of role db"),
    ([*HOSTS, host("lb1", "lb")], {}, "role: 2 hosts of role lb"),
    ([*HOSTS[2:], host("db0")], {}, "role: lb0 and db0 have one address.* at port 3306.*lb on a machine"),
    ([HOSTS[0], *HOSTS[3:]], {"segments": 2}, "segments: 2 segments do not fit databases in 1 site;? .*1"),
    (HOSTS, {"segments": 3}, "segments: 3 segments do not fit databases in 2 sites.*1 or 2"),
    (HOSTS, {"segments": 0}, "segments"),
    (HOSTS, {"weight": 256}, "weight"),
    (HOSTS, {"send_window": 1}, "settings of keystone_cloud: user_send_window"),
    (HOSTS, {"revocations": 5}, "settings of keystone_cloud: revocations: 5 rows .*a multiple of 2"),
    (HOSTS, {"users": 5, "projects": 0}, "projects: users need a project"),
    (HOSTS, {"user": 5}, "user"),
])
def test_settings_that_do_not_fit_are_refused_with_their_key(hosts, settings, message):
    with pytest.raises(InputError, match=message):
        KeystoneCloud(hosts, **settings)


def test_segments_are_numbered_in_the_order_of_sites():
    assert segments(["b", "b", "a", "c", "a"], 3) == [0, 0, 1, 2, 1]
    assert segments(["b", "a"], 1) == [0, 0]


class FakeKeystone:
    """Users, projects and the revocation table: `rows` of tokens, `others` of users and projects. Every `fails`-th
    request gets an error."""

    def __init__(self, users, rows=0, fails=0, projects=("admin", "project001")):
        self.users, self.projects, self.rows, self.others = {*users}, {*projects}, rows, 0
        self.fails, self.requests, self.revoked = fails, 0, 0

    def admin_token(self):
        return "token"

    def request(self, method, path, body=None, token=None, headers=None):
        self.requests += 1
        if self.fails and self.requests % self.fails == 0:
            return SimpleNamespace(status=500, text="deadlock", json=None)
        if method == "GET":
            found = {kind: [{"name": name, "id": name} for name in sorted(getattr(self, kind))]
                     for kind in ("users", "projects")}
            return SimpleNamespace(status=200, text="", json=found)
        if headers:
            self.rows += 2
            self.revoked += 1
        else:
            self.others += 1
            kind, name = path.strip("/").split("/")
            getattr(self, kind).discard(name)
        return SimpleNamespace(status=204, text="", json=None)

    def query(self, statement):
        if "LIMIT 1" in statement:
            self.rows -= 1
        elif statement.startswith("DELETE"):
            self.others = 0
            self.rows = self.rows if "WHERE" in statement else 0
        return ((self.rows + self.others,),)


@pytest.mark.parametrize("rows, fails, revoked", [(10, 0, 0), (6, 0, 2), (6, 3, 2), (12, 0, 5), (9, 0, 1)])
def test_a_reset_removes_what_calls_created_and_restores_the_revocations(rows, fails, revoked):
    """Tokens are revoked for missing rows; with too many rows, for all after emptying the table. Half a token's
    rows, as of a revocation that failed between both, had every reset fail."""
    keystone = FakeKeystone({"admin", "user0001", "user0002", "c_rally_1", "user0003"}, rows, fails,
                            {"admin", "project001", "labbook-1"})
    state.reset(keystone, keystone, users=2, projects=1, entries=10)
    assert keystone.users == {"admin", "user0001", "user0002"} and keystone.projects == {"admin", "project001"}
    assert (keystone.rows, keystone.others, keystone.revoked) == (10, 0, revoked)


def test_a_reset_fails_when_something_is_lost_or_the_rows_are_not_reached():
    keystone = FakeKeystone({"admin", "user0002"})
    with pytest.raises(SystemFailure, match="lost 1 users, such as user0001"):
        state.reset(keystone, keystone, users=2, projects=1, entries=0)
    with pytest.raises(SystemFailure, match="lost 2 projects, such as project002"):
        state.reset(FakeKeystone({"admin"}), keystone, users=0, projects=3, entries=0)
    keystone.query = lambda statement: ((11,),)
    with pytest.raises(SystemFailure, match="has 11 rows, and not 10"):
        state.revoke(keystone, keystone, 10)
    with pytest.raises(InputError, match="9 rows"):
        state.revoke(keystone, keystone, 9)


def test_a_refused_request_is_not_repeated():
    keystone = FakeKeystone(())
    keystone.request = lambda *_: SimpleNamespace(status=403, text="Forbidden", json=None)
    with pytest.raises(SystemFailure, match="answered POST /users with 403: Forbidden"):
        state.ask(keystone, "POST", "/users", {})


def test_an_error_of_the_server_lets_a_start_go_on_and_a_refusal_ends_it(monkeypatch):
    keystone = Keystone(host("k1"), database_address="10.0.0.9")
    answer = SimpleNamespace(status=500, text="An unexpected error", headers={})
    monkeypatch.setattr(keystone, "request", lambda *_: answer)
    with pytest.raises(ConnectionError, match="no token: 500 An unexpected error"):
        keystone.answers()
    answer.status, answer.text = 401, "The request you have made requires authentication"
    with pytest.raises(SystemFailure, match="no token: 401"):
        keystone.answers()
    answer.status, answer.headers = 201, {"X-Subject-Token": "token"}
    keystone.answers()


@pytest.fixture
def pauses(monkeypatch):
    """Seconds of all pauses, which take no time."""
    passed = []
    monkeypatch.setattr(state, "time", SimpleNamespace(sleep=passed.append))
    return passed


def test_the_pauses_between_tries_grow(pauses):
    keystone = FakeKeystone((), fails=1)
    with pytest.raises(SystemFailure, match="answered GET /users with 500: deadlock"):
        state.ask(keystone, "GET", "/users")
    assert keystone.requests == state.TRIES == len(pauses) + 1
    assert pauses[0] > 0 and all(a < b for a, b in zip(pauses, pauses[1:]))


@pytest.mark.parametrize("before, made", [((500,), True), ((), False), ((500,), False)])
def test_what_an_unanswered_request_had_made_is_found_by_its_name(pauses, before, made):
    """The repeated request was refused with 409, and the whole seed was given up."""
    user, paths = {"name": "user0001", "id": "u1", "domain_id": "default"}, []
    statuses = iter([*before, 409])

    def request(method, path, *_):
        paths.append(path)
        status = next(statuses) if method == "POST" else 200
        return SimpleNamespace(status=status, text="Duplicate", json={"users": [user] * made})

    def post():
        return state.ask(SimpleNamespace(request=request), "POST", "/users", {"user": {**user, "password": "x"}})

    if made:
        assert post() == {"user": user}
        assert paths[-1] == "/users?name=user0001&domain_id=default"
    else:
        with pytest.raises(SystemFailure, match="answered POST /users with 409: Duplicate"):
            post()


def test_a_seeds_database_is_removed_also_where_keystone_is_not(monkeypatch):
    log = []
    recorded(monkeypatch, GaleraNode, log, "up", "destroy")
    recorded(monkeypatch, Keystone, log, "up")

    def fails(_):
        raise LabError("no answer from keystone0")

    monkeypatch.setattr(Keystone, "destroy", fails)
    with pytest.raises(LabError, match="no answer"), state._running(HOSTS[0], HOSTS[4], Secrets()):
        pass
    assert log[-1] == ("galera", "destroy")


def recorded(monkeypatch, part, log, *methods):
    for method in methods:
        monkeypatch.setattr(part, method, lambda self, *_, _m=method, **__: log.append((self.NAME, _m)))


@pytest.fixture
def cloud_log(monkeypatch):
    """(name of the part, method) of all calls, and a cloud whose parts only record them."""
    log = []
    recorded(monkeypatch, Keystone, log, "destroy", "provide", "put_files", "begin", "await_answer", "kill", "stop")
    recorded(monkeypatch, HAProxy, log, "destroy", "provide", "deploy", "start", "kill", "stop")
    recorded(monkeypatch, GaleraNode, log, "destroy", "provide", "kill")
    recorded(monkeypatch, Galera, log, "deploy", "start", "stop")
    cloud = KeystoneCloud(HOSTS, users=7, projects=2, revocations=4)
    secrets = Secrets()
    seed = SimpleNamespace(arguments=None)

    def made(*hosts, **content):
        log.append(("seed", "made"))
        seed.arguments = hosts, content
        return Path("/cache/seed"), secrets

    monkeypatch.setattr(state, "seed", made)
    return log, cloud, seed, secrets


def test_a_cloud_starts_from_its_seed_with_keystone_loading_beside_the_databases(cloud_log):
    log, cloud, seed, secrets = cloud_log
    assert cloud.up() is cloud
    assert seed.arguments == ((HOSTS[0], HOSTS[4]), {"users": 7, "projects": 2, "revocations": 4})
    assert cloud.galera.data == Path("/cache/seed") and cloud.keystone.secrets is secrets
    assert {name for name, method in log[:5]} == {"galera", "haproxy", "keystone"}
    made = log.index(("seed", "made"))
    assert {("keystone", "provide"), ("galera", "provide")} <= set(log[:made]) & set(log[made:])
    assert log[-7:] == [("galera", "deploy"), ("haproxy", "deploy"), ("keystone", "put_files"),
                        ("keystone", "begin"), ("galera", "start"), ("haproxy", "start"),
                        ("keystone", "await_answer")]
    log.clear()
    cloud.stop()
    assert log == [("keystone", "stop"), ("haproxy", "stop"), ("galera", "stop")]
    assert cloud.address == HOSTS[4].address and cloud.addresses == [HOSTS[4].address]


def test_a_cloud_that_does_not_come_up_is_killed(cloud_log, monkeypatch):
    log, cloud, *_ = cloud_log

    def fails(_):
        raise SystemFailure("no quorum")

    monkeypatch.setattr(Galera, "start", fails)
    with pytest.raises(SystemFailure, match="no quorum"):
        cloud.up()
    assert sorted(log[-5:]) == [("galera", "kill")] * 3 + [("haproxy", "kill"), ("keystone", "kill")]
