"""SSH by Fabric: key authentication and known hosts only; every wait has a time limit."""

import errno
import logging
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import fabric
import paramiko
from fabric.runners import Remote
from invoke.exceptions import CommandTimedOut, ThreadException
from paramiko.config import SSHConfig
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.pkey import UnknownKeyType
from paramiko.ssh_exception import NoValidConnectionsError

from labbook.errors import LabError, Lost
from labbook.lab.ssh import jump

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # its log messages come back as exceptions

CONNECT_SECONDS = 15
KEEPALIVE_SECONDS = 15
CHANNEL_SECONDS = 60  # until a busy host opens a channel, and until it answers what the channel asks for
DEAD_SECONDS = 0.1    # between looks at the threads that read a command's output
AUTHORITY, REVOKED = "@cert-authority", "@revoked"     # markers of lines in known_hosts
GONE_SECONDS = 30     # without an acknowledgement of sent data


class TimedOut(Exception):
    """A command took longer than it may."""


LOST = (paramiko.SSHException, EOFError, OSError)


class KeyAlone(paramiko.Transport):
    """A transport that answers no question: by default paramiko asks on the terminal for what a host wants beside the
    key."""

    def auth_interactive_dumb(self, *_, **__):
        raise paramiko.BadAuthenticationType("the host asks for more than the key", ["keyboard-interactive"])


class PromptRemote(Remote):
    """Fabric's runner, woken by a command's end instead of asking for it every 10 ms."""

    def send_start_message(self, command) -> None:
        """Start the command; SSHException when the host does not answer."""
        with answered(self.channel):
            super().send_start_message(command)

    def wait(self) -> None:
        """Until the command has ended or a thread that reads its output has died."""
        while not self.channel.status_event.wait(DEAD_SECONDS) and not self.has_dead_threads:
            pass

    def send_interrupt(self, interrupt) -> None:
        """Close the channel on Ctrl-C: who waits for the threads that read it would wait for the command's end."""
        self.channel.close()
        raise interrupt


@contextmanager
def answered(channel):
    """Bound a request on a channel, for which paramiko waits without limit. A host that is alive may leave it
    unanswered: its disk hangs, or its sshd is stopped. SSHException after CHANNEL_SECONDS, with the channel closed."""
    late = threading.Event()

    def give_up():
        late.set()      # first: the close wakes who waits
        channel.close()

    limit = threading.Timer(CHANNEL_SECONDS, give_up)
    limit.daemon = True
    limit.start()
    try:
        yield
    except (paramiko.SSHException, EOFError):
        if late.is_set():
            raise paramiko.SSHException(f"no answer within {CHANNEL_SECONDS:g} s") from None
        raise
    finally:
        limit.cancel()


def connect(name: str, login) -> fabric.Connection:
    """Open a connection; LabError when the host cannot be reached or has an unknown key."""
    gateway = _gateway(name, login)
    connection = _connection(login, gateway)
    try:
        _load_known(connection.client, login.known_hosts)
        connection.connect_kwargs["pkey"] = _key(login.key)
        connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        connection.open()
    except (*LOST, UnicodeError) as error:      # of an address that is no name, such as one with two dots
        close(connection)  # its socket may be open even after a refusal
        where = f"{login.user}@{login.address}"
        via = f", through {login.jump.user}@{login.jump.address}," if gateway else ""
        raise LabError(f"{name} ({where}){via} cannot be reached: {_message(error)}") from None
    _bound(connection.transport)
    return connection


def close(connection) -> None:
    """Close a connection, and the one to its jump host when no other connection uses that."""
    gateway, connection.gateway = connection.gateway, None
    try:
        for part in (connection, connection.client):  # the SFTP channel first
            with suppress(*LOST):
                part.close()
    finally:
        if gateway:
            _jumps.release(gateway)


def _load_known(client, known_hosts):
    """The host keys of a known_hosts file, without those that it revokes. Authorities' lines count for no host here:
    paramiko knows no certificates of hosts."""
    known, revoked = [], set()
    for number, line in enumerate(Path(known_hosts).read_text(errors="replace").splitlines(), 1):
        marker, _, rest = line.strip().partition(" ")
        if not marker or marker.startswith("#") or marker == AUTHORITY:
            continue
        entry = _entry(rest if marker == REVOKED else line.strip(), number, known_hosts)
        if entry is None:       # of a kind that paramiko does not know
            continue
        if marker == REVOKED:
            revoked.add(entry.key)
        else:
            known.append(entry)
    for entry in known:
        for host in entry.hostnames if entry.key not in revoked else ():
            client.get_host_keys().add(host, entry.key.get_name(), entry.key)


def _entry(line: str, number: int, file) -> HostKeyEntry | None:
    try:
        return HostKeyEntry.from_line(line, number)
    except InvalidHostKey:      # no SSHException
        raise paramiko.SSHException(f"{file} has a line that is no host key: {line[:80]}") from None


def _key(file) -> paramiko.PKey:
    """A private key. By paramiko's own way the reason of a refused login is lost: it tries each kind of key in turn."""
    try:
        return paramiko.PKey.from_path(file)
    except (ValueError, TypeError, paramiko.PasswordRequiredException, UnknownKeyType) as error:
        raise paramiko.SSHException(
            f"{file} is no private key that can be used without a passphrase: {error}") from None


def _connection(login, gateway):
    # Not the user's configuration of SSH or Fabric: it may add a jump host, forward an agent, or ask
    # for a terminal.
    config = fabric.Config(overrides={"runners": {"remote": PromptRemote}}, ssh_config=SSHConfig(),
                           lazy=True)
    return fabric.Connection(
        login.address, user=login.user, port=login.port, config=config, gateway=gateway,
        connect_timeout=CONNECT_SECONDS,
        connect_kwargs={"transport_factory": KeyAlone, "look_for_keys": False, "allow_agent": False,
                        "banner_timeout": CONNECT_SECONDS, "auth_timeout": CONNECT_SECONDS,
                        "channel_timeout": CHANNEL_SECONDS})


def _bound(transport):
    """Detect a vanished host within GONE_SECONDS; TCP alone takes about 15 minutes."""
    transport.set_keepalive(KEEPALIVE_SECONDS)
    if isinstance(transport.sock, paramiko.Channel):  # through a jump host
        jump.watch(transport, GONE_SECONDS)
        return
    transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_SECONDS * 1000)


def _message(error) -> str:
    if isinstance(error, NoValidConnectionsError):  # its text has the resolved address
        error = next(iter(error.errors.values()))
        return error.strerror or str(error)
    return getattr(error, "text", None) or str(error) or type(error).__name__


def _gateway(name, login):
    try:
        return _jumps.take(login.jump) if login.jump else None
    except LabError as error:
        raise LabError(f"{name}: {error}") from error


def _to_jump_host(login):
    connection = connect("the jump host", login)
    # sshd sets TCP_NODELAY only after a session was requested, even one that it refuses. Without,
    # every packet is 40 ms late.
    with suppress(*LOST):
        channel = connection.transport.open_session(timeout=CONNECT_SECONDS)
        with answered(channel):
            channel.exec_command("true")
    return connection


_jumps = jump.Jumps(_to_jump_host)


def run(connection, line: str, timeout: float):
    """Run a shell line: (stdout, stderr, exit code). Raises TimedOut or one of LOST."""
    began = time.monotonic()
    try:
        done = connection.run(line, hide=True, warn=True, in_stream=False, timeout=timeout)
    except CommandTimedOut:
        raise TimedOut from None
    except ThreadException as error:
        raise paramiko.SSHException(str(error.exceptions[0].value)) from None
    if done.exited == -1:  # no exit status: our time limit, a lost connection, or a signal
        if time.monotonic() - began >= timeout:
            raise TimedOut
        if not connection.transport.is_active():
            raise paramiko.SSHException("the host closed it")
    return done.stdout, done.stderr, done.exited


def open_command(host, line: str):
    """A channel to a shell line that runs on a host. Lost when the connection broke."""
    connection = host.connection()
    try:
        channel = connection.transport.open_session(timeout=CHANNEL_SECONDS)
        with answered(channel):
            channel.exec_command(line)
        return channel
    except LOST as error:
        host.disconnect(only=connection)
        raise Lost(f"{host.name}: no channel for a command: {_message(error)}") from None


def dial(host, address: str, port: int, timeout: float):
    """A channel that behaves like a socket connected to `address`:`port`, as the host reaches it. timeout: seconds,
    to connect and of each read and write. ConnectionRefusedError when nothing listens there; LabError without a
    connection to the host."""
    try:
        channel = host.connection().transport.open_channel(
            "direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=timeout)
    except paramiko.ChannelException as error:
        raise ConnectionRefusedError(f"{host.name}: nothing answers at {address}:{port} "
                                     f"({error.text})") from None
    except LOST as error:
        if not host.connected:  # else only this channel was late; others of the host's go on
            host.disconnect()
        raise LabError(f"{host.name}: could not reach {address}:{port}: {error}") from None
    channel.settimeout(timeout)
    return _Dialed(channel, f"no answer from {address}:{port} within {timeout:g} s")


class _Dialed:
    """A channel whose time limit raises the same error as a socket's: with number and message."""

    def __init__(self, channel, late: str):
        self._channel, self._late = channel, late

    def __getattr__(self, name):
        return getattr(self._channel, name)

    def recv(self, size: int) -> bytes:
        try:
            return self._channel.recv(size)
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, self._late) from None


@contextmanager
def sftp(host, verb: str, remote: str):
    """An SFTP channel; errors name the host and the file. Lost when the connection broke; a refusal of the host's
    leaves its other channels as they are.

    One thread at a time: paramiko's client would let a thread take, and drop, what another waits for.
    """
    with host.transfers:
        try:
            connection = host.connection()
            yield _files(connection)
        except (socket.timeout, *LOST) as error:
            kind = Lost if _broke(host, error) else LabError
            if kind is Lost:
                host.disconnect()
            elif not isinstance(error, FileNotFoundError):
                _renew_sftp(connection)
            raise kind(f"{host.name}: could not {verb} {remote}: {_message(error)}") from None


def _files(connection) -> paramiko.SFTPClient:
    """The connection's client for files, which Fabric closes with it. By Fabric it would be opened without limit."""
    if connection._sftp is None:
        channel = connection.transport.open_session(timeout=CHANNEL_SECONDS)
        with answered(channel):
            channel.invoke_subsystem("sftp")
            connection._sftp = paramiko.SFTPClient(channel)
        channel.settimeout(CHANNEL_SECONDS)
    return connection._sftp


def _broke(host, error) -> bool:
    """Whether the connection broke; otherwise the host refused."""
    return not isinstance(error, FileNotFoundError) and (
        isinstance(error, (socket.timeout, paramiko.SSHException, EOFError)) or not host.connected)


def _renew_sftp(connection):
    """Close the SFTP channel alone, to which answers to more writes may come; the next transfer opens another."""
    with suppress(*LOST):
        connection._sftp.close()
    connection._sftp = None
