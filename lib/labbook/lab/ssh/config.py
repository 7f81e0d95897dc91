"""An ssh_config for a lab's hosts, so that `ssh -F` reaches them the way the library does."""

from pathlib import Path

from labbook.lab.ssh.login import Login


def write(logins: dict[str, Login], folder: Path) -> None:
    """Write `ssh_config` into the lab's state folder; `logins` by the name of the host."""
    (folder / "ssh_config").write_text(text(logins))


def text(logins: dict[str, Login]) -> str:
    """One entry for each host, then one for each jump host.

    Keys and known hosts are named explicitly, so that nothing of the user's own SSH configuration
    applies.
    """
    jumps = {}
    entries = [_entry(name, login, jumps) for name, login in logins.items()]
    return "".join([*entries, *jumps.values()])


def _entry(name, login, jumps) -> str:
    lines = [f"Host {name}", f"HostName {login.address}", f"Port {login.port}",
             f"User {login.user}", f"IdentityFile {_quoted(login.key)}", "IdentitiesOnly yes",
             "IdentityAgent none", "PreferredAuthentications publickey", "PasswordAuthentication no",
             f"UserKnownHostsFile {_quoted(login.known_hosts)}", "GlobalKnownHostsFile /dev/null",
             "StrictHostKeyChecking yes", "ServerAliveInterval 15"]
    if login.jump:
        lines.append(f"ProxyJump {_jump(login.jump, jumps)}")
    return "\n  ".join(lines) + "\n"


def _jump(login, jumps) -> str:
    """The name of a jump host's entry, which is added to `jumps` when it is not there."""
    name = f"jump-{login.user}-{login.address}-{login.port}".replace(":", "_")     # of IPv6, not of a port
    if name not in jumps:
        jumps[name] = ""  # keeps its place before the jump hosts on the way to it
        jumps[name] = _entry(name, login, jumps)
    return name


def _quoted(path) -> str:
    return '"{}"'.format(str(path).replace("%", "%%"))
