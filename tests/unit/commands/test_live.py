"""exec, capture, link, cut and heal: which lab, hosts and links a command means."""

from types import SimpleNamespace

import pytest

from labbook import cli, paths
from labbook.commands import live
from labbook.errors import InputError, LabError


def record(lab_id="ab12", study="wan", keep=True, hosts=("db1", "db2", "client", "router-a", "router-b"),
           links=(("a", "b"),), checkout=None):
    return SimpleNamespace(id=lab_id, study=study, keep=keep, hosts=hosts, links=links,
                           checkout=checkout or str(paths.checkout()))


@pytest.mark.parametrize("pattern, hosts", [
    ("db*", ["db1", "db2"]), ("client", ["client"]), ("*", ["db1", "db2", "client"]), ("db[2-9]", ["db2"]),
    ("router-*", ["router-a", "router-b"])])
def test_a_pattern_fits_hosts_and_routers_only_when_it_says_so(pattern, hosts):
    assert live.fitting(record(), pattern) == hosts


def test_an_error_about_a_wrong_host_lists_the_hosts():
    with pytest.raises(InputError, match=r"did you mean 'client'\? \(allowed: db1, db2, client\)"):
        live.fitting(record(), "cleint")


@pytest.mark.parametrize("pair, message", [
    (("a", "c"), r"allowed: a b"), (("lan", "b"), "no such link"), (("a", "a"), "a b")])
def test_an_error_about_a_wrong_link_lists_the_links(pair, message):
    with pytest.raises(InputError, match=message):
        live.check_link(record(), *pair)
    live.check_link(record(), "b", "a")


def test_in_one_site_there_is_no_link():
    with pytest.raises(InputError, match="hosts are in one site"):
        live.check_link(record(links=()), "a", "b")


def test_the_far_site_of_a_link_with_hyphens_in_its_sites():
    lab = record(links=(("eu-1", "us"), ("us", "asia")))
    assert live._far_site(lab, "us-eu-1", SimpleNamespace(name="h", site="eu-1")) == "us"
    with pytest.raises(InputError, match="allowed: eu-1-us"):
        live._far_site(lab, "us-asia", SimpleNamespace(name="h", site="eu-1"))
    with pytest.raises(InputError, match="did you mean 'us-asia'"):
        live._far_site(lab, "us-asi", SimpleNamespace(name="h", site="us"))


def test_the_lab_is_the_one_that_is_up_and_of_several_the_kept_one():
    run, mine = record("r1", keep=False), record("k1")
    assert live.chosen([run], None) is run
    assert live.chosen([run, mine], None) is mine
    assert live.chosen([run, mine], "r1") is run
    assert live.chosen([mine, record("k2", checkout="/elsewhere")], None) is mine
    for labs, name, message in (([mine, record("k2", "cms")], None, r"--lab: more than one .*k1 \(wan\), k2 \(cms\)"),
                                ([mine], "cms", r"no such lab is up: cms \(allowed: k1 \(wan\)\)")):
        with pytest.raises(InputError, match=message):
            live.chosen(labs, name)
    with pytest.raises(LabError, match="labbook up"):
        live.chosen([], None)


def test_a_lab_in_which_a_run_may_measure_must_be_named_to_run_a_command_in_it(monkeypatch):
    monkeypatch.setattr(live, "_lab", lambda name: record("r1", keep=False))
    with pytest.raises(InputError, match="allowed: --lab r1"):
        live.execute(SimpleNamespace(remote_command=["uptime"], pattern="*", lab=None))


@pytest.mark.parametrize("file", ["missing/x.pcap", "."])
def test_where_no_file_can_be_nothing_is_captured(monkeypatch, tmp_path, file):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live, "_lab", lambda name: record())
    with pytest.raises(InputError, match="-o "):
        live.capture(SimpleNamespace(lab=None, host="db1", output=file, link=None, expression=None, seconds=1))


@pytest.mark.parametrize("loss", [-1, 95])
def test_a_loss_that_a_link_cannot_have_is_refused_in_percent(monkeypatch, loss):
    monkeypatch.setattr(live, "_lab", lambda name: pytest.fail("looked for the lab"))
    with pytest.raises(InputError, match=f"--loss {loss}: .*0 to 90, in percent"):
        live.link(SimpleNamespace(lab=None, site_a="a", site_b="b", loss=loss))


def test_a_link_in_words():
    settings = {"rtt_ms": 200.0, "jitter_ms": 0.0, "loss": 0.01, "rate_mbit": None, "cut": False}
    one = SimpleNamespace(site_a="a", site_b="b", asked=settings)
    assert live.in_words(one) == "a-b: round trip 200 ms, 1 % lost each way"
    one.asked = settings | {"cut": True, "rtt_ms": 0.0, "loss": 0.0}
    assert live.in_words(one) == "a-b: cut; not shaped"


@pytest.mark.parametrize("args, code, message", [
    (["exec", "db*"], 2, "no command to run"), (["heal", "a"], 2, "two sites"),
])
def test_wrong_input_is_one_message(capsys, args, code, message):
    assert cli.main(args) == code and message in capsys.readouterr().err


def test_loss_is_in_percent_on_the_command_line(monkeypatch):
    shaped = []
    one = SimpleNamespace(site_a="a", site_b="b", shape=lambda **given: shaped.append(given), asked={
        "rtt_ms": 0.0, "jitter_ms": 0.0, "loss": 0.0, "rate_mbit": None, "cut": False})

    class Held:
        __init__ = lambda self, given: None     # noqa: E731
        __enter__ = lambda self: one            # noqa: E731
        __exit__ = lambda self, *how: None      # noqa: E731
    monkeypatch.setattr(live, "_held_link", Held)
    assert cli.main(["link", "a", "b", "--rtt", "200", "--loss", "1"]) == 0
    assert shaped == [{"rtt_ms": 200.0, "loss": 0.01}]
