"""Hosts for tests that are foreign to this checkout: Debian machines of their own, reached by SSH.

    with foreign_hosts(["h1", "h2", "h3"], jump="bastion") as place:
        path = place.environment(folder / "hosts.yml", allow=["limits"])

Each has namespaces of its own, its own accounts, settings, homes, packages and sshd over a private
layer on this machine's /usr; nothing of the checkout, of an environment or of a cache is visible.
The last host is reached only through the jump host. Made by plain unshare, ip and mount, not by
the code under test. They end with the process that made them, whatever ends it.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import yaml

HERE = Path(__file__).parent
USER = "op"
ROLES = ["db", "client"]
SUDO = [] if os.geteuid() == 0 else ["sudo", "-n"]
PYTHON = "/usr/bin/python3"   # root's part needs nothing but Debian's


@contextmanager
def foreign_hosts(names, jump=None, sudo=True, lent=()):
    """Hosts, each reachable from the others on the data network, with one account, `op`. lent: folders of this
    machine that they may read."""
    place = Place(list(names), jump, sudo, lent)
    try:
        yield place
    finally:
        place.close()


class Place:
    """`addresses[host]`: {"control" or "inner": where its sshd is, "data": where it serves}."""

    def __init__(self, names, jump, sudo, lent=()):
        if not Path("/usr/bin/sudo").exists():
            raise OSError("foreign hosts need the package sudo (labbook install --tests)")
        self.names, self.jump, self.user, self._pids = names, jump, USER, {}
        nets = {name: ["control", "data"] for name in names}
        if jump:
            nets[names[-1]] = ["inner", "data"]
            nets[jump] = ["control", "inner"]
        self._keeper = subprocess.Popen([*SUDO, PYTHON, str(HERE / "foreign_keeper.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            made = self._ask("make", hosts=nets, user=USER, sudo=sudo, lent=[str(path) for path in lent])
        except BaseException:
            self.close()
            raise
        self.id, self.folder = made["id"], made["folder"]
        self.addresses, self._pids, self.keys = made["addresses"], made["pids"], made["keys"]

    def _ask(self, what, **given):
        print(json.dumps({"do": what, **given}), file=self._keeper.stdin, flush=True)
        line = self._keeper.stdout.readline()
        answer = json.loads(line) if line else {"error": "the keeper of foreign hosts died"}
        if "error" in answer:
            raise OSError(answer["error"])
        self._pids = answer.get("pids", self._pids)
        return answer

    def close(self):
        self._keeper.stdin.close()
        self._keeper.wait(60)

    def address(self, name: str) -> str:
        """Where its sshd is for us, or for the jump host."""
        nets = self.addresses[name]
        return nets.get("control") or nets["inner"]

    def behind_jump(self, name: str) -> bool:
        return "control" not in self.addresses[name]

    def environment(self, path, roles=ROLES, hosts=None, jumps=None, **defaults):
        """Write an environment file, and beside it the key and the known hosts that it names.

        `roles` of all hosts or {host: roles}; `defaults` replace top-level keys, `hosts` and
        `jumps` those of entries ({name: {key: value}}); None takes a key away.
        """
        folder = Path(path).parent
        key, known = folder / "foreign_key", folder / "foreign_known_hosts"
        key.write_text(self.keys["private"])
        key.chmod(0o600)
        known.write_text("".join(f"{self.address(name)} {public}\n"
                                 for name, public in self.keys["hosts"].items()))
        entries = {name: {"address": self.address(name), "data": self.addresses[name]["data"],
                          "roles": roles[name] if isinstance(roles, dict) else list(roles),
                          **({"jump": self.jump} if self.behind_jump(name) else {})}
                   for name in self.names}
        data = {"provider": "ssh", "user": USER, "key": str(key), "known_hosts": str(known),
                "root": f"/home/{USER}/labbook", "hosts": entries}
        if self.jump:
            data["jumps"] = {self.jump: {"address": self.address(self.jump), "user": USER}}
        _merge(data, {**defaults, "hosts": hosts or {}, "jumps": jumps or {}})
        Path(path).write_text(yaml.safe_dump(data, sort_keys=False))
        return Path(path)

    def inside(self, name, command: str, check=True, user="root", **options):
        """Run a shell command on a host without SSH, as if at its console; its output."""
        done = subprocess.run([*self._enter(name), "runuser", "-u", user, "--", "sh", "-c", command],
                              text=True, capture_output=True, **options)
        assert not check or done.returncode == 0, (name, command, done.stderr)
        return done.stdout

    def _enter(self, name):
        return [*SUDO, "nsenter", "-t", str(self._pids[name]), "--all", "env", "-i",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"]

    def snapshot(self, name) -> dict:
        """What the host has: files, processes, rules, cgroups, mounts, packages, ... (JSON)."""
        done = subprocess.run([*self._enter(name), PYTHON, "-B", "-c",
                               (HERE / "foreign_view.py").read_text()],
                              text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return {**found, "files": {**found["files"], **self._written_below_usr(name)}}

    def _written_below_usr(self, name):
        """From the layer over the machine's /usr; a file that was taken away is one of kind c."""
        upper = Path(self.folder, f"{name}.over", "usr", "upper")
        found = subprocess.run([*SUDO, "find", str(upper), "-mindepth", "1", "-printf",
                                "%P\t%y %m %U:%G %s %T@\n"], text=True, capture_output=True,
                               check=True).stdout
        entries = dict(line.split("\t") for line in found.splitlines())
        return {f"/usr/{path}": facts for path, facts in entries.items()
                if facts[0] != "d" or not Path("/usr", path).is_dir()}

    def snapshots(self) -> dict:
        return {name: self.snapshot(name) for name in self.addresses}

    def cut(self, name) -> None:
        """Packets to and from its sshd get lost; those on the data network do not."""
        for net in set(self.addresses[name]) - {"data"}:
            self._ask("cable", name=name, net=net, up=False)

    def heal(self, name) -> None:
        for net in set(self.addresses[name]) - {"data"}:
            self._ask("cable", name=name, net=net, up=True)

    def hang_up(self, name) -> None:
        """End its open SSH connections, but not what runs on the host, nor its sshd."""
        self.inside(name, "pkill -KILL -f '^sshd: [a-z]+( |@)'", check=False)

    def halt(self, name) -> None:
        """As if its power was cut: its disk stays."""
        self._ask("halt", names=[name])

    def reboot(self, name) -> None:
        if name in self._pids:
            self.halt(name)
        self._ask("boot", names=[name])


def differences(before: dict, after: dict) -> list[str]:
    """What two snapshots of a host differ in, a line each."""
    found = []
    for part in before:
        old, new = before[part], after[part]
        if isinstance(old, dict):
            found += [f"{part}: {key}: {old.get(key)} -> {new.get(key)}"
                      for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        else:
            found += [f"{part}: gone: {x}" for x in _without(old, new)]
            found += [f"{part}: new: {x}" for x in _without(new, old)]
    return found


def _without(first, second):
    left = list(second)
    return [x for x in first if x not in left or left.remove(x)]


def _merge(data, changes):
    for key, value in deepcopy(changes).items():
        if value is None:
            data.pop(key, None)
        elif isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value)
        elif value != {}:
            data[key] = value


if __name__ == "__main__":   # a place to look around in, until Enter
    with foreign_hosts(["h1", "h2", "h3"], jump="bastion") as here:
        print(here.environment(Path(sys.argv[1], "hosts.yml")).read_text())
        input()
