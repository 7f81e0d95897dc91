"""A command on a lab's host: labbook, the `ssh` program, Fabric alone and Ansible.

    .venv/bin/python benchmarks/remote_command.py [--commands 50] [--rounds 6] [--short] [--json FILE]

`true` on a host, so many times one after the other, in turns: `Host.run`; `ssh` on a control connection that is
open; Fabric on a connection of its own that is open; a task of a playbook of as many tasks, with pipelining
and without gathering facts, whose whole run counts. Ansible has packages of its own (`labbook install
--benchmarks`); --short leaves it out. Root, or sudo.
"""

import os
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import shared
from rounds import Rounds, timed

from labbook.lab import Environment, Lab, LabDescription
from labbook.pipeline.setup import peers

HOST = "h1"


def main():
    args = _arguments()
    shared.check(artifacts=() if args.short else (peers.ANSIBLE,))
    file = shared.log("remote_command")
    rounds = Rounds("remote_command", args, {"fabric": version("fabric"), "ansible-core": peers.ANSIBLE.version},
                    commands=args.commands)
    description = LabDescription.parse({"sites": ["lan"], "hosts": {HOST: {"site": "lan", "role": "node"}}})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab, \
            tempfile.TemporaryDirectory() as folder, Others(lab, Path(folder), file) as others:
        host = lab.host(HOST)

        def each(way):
            return lambda: timed(lambda: [way() for _ in range(args.commands)]) / args.commands

        ours = each(lambda: host.run("true"))
        ours()      # opens the connection
        rounds.in_turns("ssh", [ours, each(others.ssh)])
        rounds.in_turns("fabric", [ours, each(others.fabric)])
        if not args.short:
            rounds.in_turns("ansible", [ours, lambda: others.ansible(args.commands)])


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--commands", type=int, default=50, help="of a round; default: 50")
    args = parser.parse_args()
    if args.short:
        args.commands, args.rounds = 5, 1
    return args


class Others:
    """The other ways to run `true` on the lab's host, with connections that are open inside the block."""

    def __init__(self, lab, folder: Path, log):
        self._config, self._folder, self._log = lab.folder / "ssh_config", folder, log
        self._ssh = ["ssh", "-F", str(self._config), "-S", str(folder / "control")]

    def __enter__(self) -> "Others":
        from fabric import Config, Connection

        subprocess.run([*self._ssh, "-M", "-N", "-f", HOST], check=True, stderr=subprocess.DEVNULL)
        self._connection = Connection(HOST, config=Config(runtime_ssh_path=str(self._config)))
        self.fabric()
        return self

    def __exit__(self, *_):
        self._connection.close()
        subprocess.run([*self._ssh, "-O", "exit", HOST], stderr=subprocess.DEVNULL)

    def ssh(self) -> None:
        subprocess.run([*self._ssh, HOST, "true"], check=True)

    def fabric(self) -> None:
        self._connection.run("true", hide=True, in_stream=False)

    def ansible(self, tasks: int) -> float:
        """Seconds of a task, of a playbook of so many."""
        (self._folder / "playbook.yml").write_text(playbook(tasks))
        (self._folder / "hosts").write_text(f"{HOST} ansible_python_interpreter=/usr/bin/python3\n")
        (self._folder / "ansible.cfg").write_text(settings(self._config, self._folder))
        command, environment = peers.command_line(
            peers.ANSIBLE, "-m", "ansible", "playbook", "-i", self._folder / "hosts", self._folder / "playbook.yml")
        return shared.timed(command, self._log, env={**os.environ, **environment, "ANSIBLE_CONFIG":
                                                     str(self._folder / "ansible.cfg")}) / tasks


def playbook(tasks: int) -> str:
    head = "- hosts: all\n  gather_facts: false\n  tasks:\n"
    return head + "    - ansible.builtin.command: 'true'\n" * tasks


def settings(ssh_config: Path, folder: Path) -> str:
    return (f"[defaults]\nhome = {folder}\n[connection]\npipelining = true\n"
            f"[ssh_connection]\nssh_args = -F {ssh_config} -o ControlMaster=auto -o ControlPersist=60s\n"
            f"control_path_dir = {folder}\n")


if __name__ == "__main__":
    shared.run(main)
