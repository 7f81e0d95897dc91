"""SSH connections: what the user's own settings cannot change, and ends that are already lost."""

import socket
import threading
from types import SimpleNamespace

import paramiko
import pytest

from labbook.errors import LabError, Lost
from labbook.lab.ssh import connection as ssh, transfer
from labbook.lab.ssh.login import Login


class Broken:
    """A connection whose far end has gone: each step of its close complains."""

    def __init__(self, gateway=None):
        self.gateway, self.client, self.closed = gateway, self, 0

    def close(self):
        self.closed += 1
        raise EOFError


def test_a_connection_that_is_dead_is_closed_without_a_word():
    connection = Broken()
    ssh.close(connection)
    assert connection.closed == 2   # the files' channel complained: the transport is closed too


def test_threads_take_turns_at_a_hosts_files():
    host = host_with(SimpleNamespace(_sftp=object()))
    entered = threading.Event()

    def other():
        with ssh.sftp(host, "put", "a file"):
            entered.set()

    second = threading.Thread(target=other)
    with ssh.sftp(host, "put", "a file"):
        second.start()
        assert not entered.wait(0.2)
    assert entered.wait(20)
    second.join()


def host_with(connection, connected=True):
    """A host with a connection, and `left`: a word for each time that it was dropped."""
    left = []
    return SimpleNamespace(name="h", transfers=threading.RLock(), connection=lambda: connection, connected=connected,
                           disconnect=lambda only=None: left.append("dropped"), left=left)


@pytest.mark.parametrize("connected, left", [(True, []), (False, ["dropped"])])
def test_an_address_that_does_not_answer_takes_no_connection_with_it(connected, left):
    def open_channel(*_, **__):
        raise ssh.paramiko.SSHException("Timeout opening channel.")

    host = host_with(SimpleNamespace(transport=SimpleNamespace(open_channel=open_channel)), connected)
    with pytest.raises(LabError, match="^h: could not reach 192.0.2.9:22: Timeout opening"):
        ssh.dial(host, "192.0.2.9", 22, 1)
    assert host.left == left


@pytest.mark.parametrize("error, kind, left, files", [
    (PermissionError(13, "Permission denied"), LabError, [], "another"), (OSError("Failure"), LabError, [], "another"),
    (FileNotFoundError(2, "No such file"), LabError, [], "the same"),
    (EOFError(), Lost, ["dropped"], "the same"), (TimeoutError(), Lost, ["dropped"], "the same")])
def test_a_file_that_is_refused_ends_the_channel_for_files_alone(error, kind, left, files):
    closed = []
    connection = SimpleNamespace(_sftp=SimpleNamespace(close=lambda: closed.append("files")))
    host = host_with(connection)
    with pytest.raises(LabError, match="^h: could not put /x: ") as raised, ssh.sftp(host, "put", "/x"):
        raise error
    assert type(raised.value) is kind and host.left == left
    assert (connection._sftp is None) == bool(closed) == (files == "another")


class Mute(paramiko.ServerInterface):
    """A host whose sshd opens channels and then answers no request until `let` is set."""

    def __init__(self):
        self.let = threading.Event()

    def check_auth_none(self, _):
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, *_):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, *_):
        return not self.let.wait(60)

    check_channel_subsystem_request = check_channel_exec_request


@pytest.fixture
def to_a_mute_host(monkeypatch):
    """A host with a connection to a Mute one; the limit is half a second."""
    monkeypatch.setattr(ssh, "CHANNEL_SECONDS", 0.5)
    near, far = socket.socketpair()
    server, mute = paramiko.Transport(far), Mute()
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.start_server(server=mute, event=threading.Event())
    connection = ssh._connection(Login("192.0.2.1", "op", "/key", "/known"), None)
    connection.transport = paramiko.Transport(near)
    connection.transport.start_client(timeout=20)
    connection.transport.auth_none("op")
    yield host_with(connection)
    mute.let.set()
    connection.transport.close()
    server.close()


def test_a_command_that_the_host_does_not_start_is_given_up(to_a_mute_host):
    with pytest.raises(paramiko.SSHException, match=r"^no answer within 0\.5 s$"):
        ssh.run(to_a_mute_host.connection(), "true", 20)


def test_a_channel_to_a_command_that_the_host_does_not_start_is_given_up(to_a_mute_host):
    with pytest.raises(Lost, match=r"^h: no channel for a command: no answer within 0\.5 s$"):
        ssh.open_command(to_a_mute_host, "true")


def test_files_that_the_host_does_not_serve_are_given_up(to_a_mute_host):
    with pytest.raises(Lost, match=r"^h: could not put /x: no answer within 0\.5 s$"), \
            ssh.sftp(to_a_mute_host, "put", "/x"):
        pass
    assert to_a_mute_host.connection()._sftp is None


def test_a_copy_that_the_host_does_not_take_is_given_up(to_a_mute_host, tmp_path):
    to_a_mute_host.in_root_folder = lambda command, env: command
    with pytest.raises(Lost, match=r"^h: copying x broke off: no answer within 0\.5 s$"):
        transfer.feed(to_a_mute_host, "cat", lambda sink: None, 1, "copying x")


def waiting(dead=False):
    """A runner that waits in a thread for the end of a command."""
    runner = ssh.PromptRemote.__new__(ssh.PromptRemote)
    runner.channel = SimpleNamespace(status_event=threading.Event())
    runner.threads = {"reader": SimpleNamespace(is_dead=dead)}
    thread = threading.Thread(target=runner.wait, daemon=True)
    thread.start()
    return runner, thread


def test_the_end_of_a_command_wakes_who_waits_for_it():
    runner, thread = waiting()
    thread.join(3 * ssh.DEAD_SECONDS)
    assert thread.is_alive()
    runner.channel.status_event.set()
    thread.join(20)
    assert not thread.is_alive()


def test_nobody_waits_for_a_command_whose_output_nobody_reads():
    _, thread = waiting(dead=True)
    thread.join(20)
    assert not thread.is_alive()


def test_an_interrupt_closes_the_channel_so_that_nobody_waits_for_the_commands_end():
    runner, closed = ssh.PromptRemote.__new__(ssh.PromptRemote), []
    runner.channel = SimpleNamespace(close=lambda: closed.append(True))
    with pytest.raises(KeyboardInterrupt):
        runner.send_interrupt(KeyboardInterrupt())
    assert closed == [True]


def test_fabrics_own_files_of_settings_are_not_read(tmp_path, monkeypatch):
    (tmp_path / ".fabric.yml").write_text(
        "forward_agent: true\nrun: {env: {LD_PRELOAD: mine.so}, pty: true, echo: true}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    connection = ssh._connection(Login("192.0.2.1", "op", "/key", "/known"), None)
    assert not connection.forward_agent
    run = connection.config.run
    assert (dict(run.env), run.pty, run.echo) == ({}, False, False)
    assert connection.config.runners.remote is ssh.PromptRemote


def test_a_known_hosts_file_with_a_broken_line_is_named(tmp_path):
    known = tmp_path / "known_hosts"
    known.write_text("192.0.2.1 ssh-ed25519 AAAAC\n")
    with pytest.raises(LabError, match=f"{known}.*192.0.2.1"):
        ssh.connect("rack1", Login("192.0.2.1", "op", "/key", str(known)))


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "key"
    paramiko.RSAKey.generate(2048).write_private_key_file(str(file))
    return str(file)


def known_line(marker, key, name="192.0.2.1"):
    return f"{marker} {name} {key.get_name()} {key.get_base64()}\n".lstrip()


def test_authorities_are_passed_over_and_revoked_keys_are_not_known(tmp_path):
    """A company's line for all of its hosts made each of them unreachable, as a line that is no host key."""
    good, bad = (paramiko.ECDSAKey.generate() for _ in range(2))
    known, client = tmp_path / "known_hosts", paramiko.SSHClient()
    known.write_text("# ours\n\n" + known_line("@cert-authority", bad, "*.corp") + known_line("", good)
                     + known_line("", bad, "192.0.2.2") + known_line("@revoked", bad, "*"))
    ssh._load_known(client, known)
    assert client.get_host_keys().lookup("192.0.2.1")[good.get_name()] == good
    assert client.get_host_keys().lookup("192.0.2.2") is None and client.get_host_keys().lookup("x.corp") is None


def test_no_question_of_a_host_reaches_the_terminal():
    """With a second factor paramiko had asked for it, and echoed the answer."""
    with pytest.raises(paramiko.BadAuthenticationType, match="more than the key"):
        ssh.KeyAlone.auth_interactive_dumb(object(), "op")
    made = ssh._connection(Login("192.0.2.1", "op", "/key", "/known"), None)
    assert made.connect_kwargs["transport_factory"] is ssh.KeyAlone and "key_filename" not in made.connect_kwargs


def test_a_key_that_is_none_or_has_a_passphrase_is_named(tmp_path, key):
    assert ssh._key(key).get_name() == "ssh-rsa"
    locked, none = tmp_path / "locked", tmp_path / "none"
    paramiko.RSAKey.generate(2048).write_private_key_file(str(locked), password="secret")
    none.write_text("no key\n")
    for file in (locked, none):
        with pytest.raises(paramiko.SSHException, match=f"{file} is no private key that can be used without"):
            ssh._key(str(file))


def test_a_connection_that_did_not_come_about_leaves_no_socket(tmp_path, key):
    with socket.create_server(("127.0.0.1", 0)) as server:
        known = tmp_path / "known_hosts"
        known.touch()
        closed = []

        class Noted(ssh.fabric.Connection):
            def open(self):
                self.client.close = lambda: closed.append(self)
                raise ssh.paramiko.SSHException("no such key")

        original, ssh.fabric.Connection = ssh.fabric.Connection, Noted
        try:
            with pytest.raises(LabError, match="no such key"):
                ssh.connect("rack1", Login("127.0.0.1", "op", key, str(known),
                                           server.getsockname()[1]))
        finally:
            ssh.fabric.Connection = original
    assert closed


def test_an_address_that_a_name_stands_for_is_not_reported(tmp_path, key):
    """Records take the names of hosts out of messages, and know no other address of theirs."""
    known = tmp_path / "known_hosts"
    known.touch()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(LabError, match="refused") as error:
            ssh.connect("rack1", Login("localhost", "op", key, str(known),
                                       bound.getsockname()[1]))
    assert "localhost" in str(error.value) and "127.0.0.1" not in str(error.value)


def test_an_address_that_is_no_name_is_not_reached(tmp_path):
    """With two dots it ended a command with a traceback."""
    (tmp_path / "known").write_text("")
    key = tmp_path / "key"
    paramiko.ECDSAKey.generate().write_private_key_file(str(key))
    with pytest.raises(LabError, match="db1 .me@host..example. cannot be reached"):
        ssh.connect("db1", Login("host..example", "me", str(key), str(tmp_path / "known")))
