"""The user's own way into a lab's hosts: an ssh_config with the jump hosts in it."""

from pathlib import Path

from labbook.lab.remote.claim import login_of


def write(hosts: list[dict], folder: Path) -> None:
    (folder / "ssh_config").write_text(config(hosts))


def config(hosts: list[dict]) -> str:
    """Keys and known hosts as the environment file names them, and nothing of the user's own
    configuration: the way is the same as the library's."""
    entries, jumps = [], {}
    for host in hosts:
        entries.append(_entry(host["name"], login_of(host["login"]), jumps))
    return "".join([*entries, *jumps.values()])


def _entry(name, login, jumps):
    lines = [f"Host {name}", f"HostName {login.address}", f"Port {login.port}",
             f"User {login.user}", f"IdentityFile {_quoted(login.key)}", "IdentitiesOnly yes",
             "IdentityAgent none", f"UserKnownHostsFile {_quoted(login.known_hosts)}",
             "StrictHostKeyChecking yes", "ServerAliveInterval 15"]
    if login.jump:
        lines.append(f"ProxyJump {_jump(login.jump, jumps)}")
    return "\n  ".join(lines) + "\n"


def _jump(login, jumps) -> str:
    name = f"jump-{login.user}-{login.address}-{login.port}"
    if name not in jumps:
        jumps[name] = ""  # its place in the order, before those on the way to it
        jumps[name] = _entry(name, login, jumps)
    return name


def _quoted(path) -> str:
    return '"{}"'.format(str(path).replace("%", "%%"))
