"""Why a user's host cannot be reached: the cause, the environment file's key, and the remedy."""

import errno
import shlex
import socket

import paramiko
from paramiko.ssh_exception import NoValidConnectionsError

from labbook.lab.environment.inventory import Jump
from labbook.lab.finding import Finding

FORBIDDEN = 1       # reason codes of RFC 4254, 5.1: administratively prohibited
SILENT = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def unreachable(place: Jump, error: Exception) -> Finding:
    """A Finding about the connection to `place`, from the error or its cause."""
    key, found, remedy = _explained(place, _cause(error))
    return Finding(f"{place.entry}.{key}", "reachable", False, "SSH goes there", found, remedy)


def _cause(error):
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
        if isinstance(error, (paramiko.SSHException, OSError)):
            break
    if isinstance(error, NoValidConnectionsError):  # one for each address tried
        error = next(iter(error.errors.values()))
    return error


def _explained(place, error) -> tuple[str, str, str]:
    """(key of the entry, what was found, remedy)"""
    there = f"{place.address}, port {place.port}"
    if isinstance(error, socket.gaierror):
        return "address", f"no such name: {place.address}", (
            "Write its IP address, or a name that this machine knows")
    if isinstance(error, paramiko.ChannelException):
        return _beyond_jump(place, error, there)
    if isinstance(error, paramiko.BadHostKeyException):
        return "known_hosts", f"another host key than in {place.known_hosts}", (
            f"It is another machine, or was set up anew. If you know that: ssh-keygen -f "
            f"{place.known_hosts} -R '{_known_as(place)}' and then {_scan(place)}")
    if isinstance(error, paramiko.AuthenticationException):
        return "user", f"login refused for {place.user} with the key {place.key}", (
            f"Let the key in: ssh-copy-id -i {place.key}.pub {_by_way_of(place)}-p {place.port} "
            f"{place.user}@{place.address}")
    if "is no host key" in str(error):
        return "known_hosts", str(error), f"Take the line out of {place.known_hosts}, or mend it"
    if "is no private key" in str(error):
        return "key", str(error), "Name another key, such as one that ssh-keygen -t ed25519 makes without a passphrase"
    for name in ("known_hosts", "key"):
        if isinstance(error, OSError) and str(error.filename) == str(getattr(place, name)):
            return name, str(error), "See that the file is there, and that you may read it"
    if "not found in known_hosts" in str(error):
        return "known_hosts", f"its host key is not in {place.known_hosts}", (
            f"{_scan(place)} adds it; compare `ssh-keygen -lf {place.known_hosts}` with what the "
            "machine itself says: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
    if isinstance(error, ConnectionRefusedError):
        return "port", f"refused at {there}", "See that sshd runs there and listens at this port"
    if isinstance(error, TimeoutError) or getattr(error, "errno", None) in SILENT:
        return "address", f"no answer from {there}", (
            "See that it is on, and that no firewall lies between; a host behind another one "
            "takes `jump`")
    return "port", f"no SSH connection to {there}: {error or type(error).__name__}", (
        f"See what `ssh -v {_by_way_of(place)}-p {place.port} {place.user}@{place.address}` says")


def _beyond_jump(place, error, there):
    if error.code == FORBIDDEN:
        return "jump", f"{place.jump.name} does not pass connections on", (
            "Set AllowTcpForwarding yes in its sshd_config, or go through another host")
    return "jump", f"{place.jump.name} does not reach {there} ({error.text})", (
        f"See that {place.address} is right as {place.jump.name} sees it, and that its sshd runs")


def _known_as(place) -> str:
    return place.address if place.port == 22 else f"[{place.address}]:{place.port}"


def _by_way_of(place) -> str:
    """The option with which ssh and its kin go through the host before `place`; empty without one."""
    if not place.jump:
        return ""
    return f"-o {shlex.quote(f'ProxyCommand={_ssh_to(place.jump)} -W {place.address}:{place.port}')} "


def _ssh_to(jump) -> str:
    return f"ssh -i {jump.key} {_by_way_of(jump)}-p {jump.port} {jump.user}@{jump.address}"


def _scan(place) -> str:
    scan = f"ssh-keyscan -p {place.port} {place.address}"
    if place.jump:
        scan = f"{_ssh_to(place.jump)} {scan}"
    return f"{scan} >> {place.known_hosts}"
