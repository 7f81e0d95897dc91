"""Where the arms of an experiment are: hosts of their own, at once if memory carries that."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from labbook.errors import InputError
from labbook.lab.quantities import size_text

# For the clients, the driver and the kernel, which have no limit. The five studies' clients use less
# than half of it.
BESIDE_ARMS = 2**30


@dataclass
class ArmHosts:
    """`named`: {arm: names of its hosts}; empty where the experiment names none.

    `description`: the lab's; `environment`: path of the environment file. Both are None without hosts.
    """

    named: dict
    description: object = None
    environment: Path | None = None

    @classmethod
    def of(cls, study, experiment: str, paired: dict, hosts: dict | None) -> "ArmHosts":
        """InputError for hosts of other arms, for an arm without, and for hosts that lab.yml lacks."""
        if not hosts:
            return cls({})
        key = f"experiment {experiment}: hosts"
        arms = next(iter(paired.values()), [])
        if set(hosts) != set(arms):
            raise InputError(f"hosts of {_words(hosts)}", key=key,
                             allowed=f"hosts of each arm: {_words(arms)}" if paired else "hosts only with paired")
        from labbook.lab.description import LabDescription

        description = LabDescription.load(study.folder / "lab.yml").of(experiment)
        known = [host.name for host in description.hosts]
        named = {arm: [names] if isinstance(names, str) else list(names) for arm, names in hosts.items()}
        for name in (name for names in named.values() for name in names):
            if name not in known:
                raise InputError(f"no host {name!r} in lab.yml", key=key, allowed=known)
        return cls(named, description, study.environment_file())

    def hosts(self, repeat: int) -> dict:
        """{arm: its hosts in this repeat}: swapped from repeat to repeat (1 2, 2 1, 2 1, 1 2) where the
        arms' hosts are as many and have the same limits, so that no arm always has the better one."""
        arms = list(self.named)
        if not self._alike or repeat % 4 not in (2, 3):
            return dict(self.named)
        return dict(zip(arms, [self.named[arm] for arm in reversed(arms)]))

    @property
    def at_once(self) -> bool:
        """Whether all arms are up at the same time."""
        return self._turns is None

    def words(self) -> str:
        """How the arms are up, for a plan."""
        arms = _words(self.named) if self.named else "the arms"
        return f"{arms} are up at once" if self.at_once else f"{arms} take turns: {self._turns}"

    @cached_property
    def _alike(self) -> bool:
        """Whether the arms' hosts have the same limits: as written, or where one set has cores that the others
        name by cores_of."""
        def are(limits):
            each = [[limits(name) for name in names] for names in self.named.values()]
            return all(one == each[0] for one in each)

        return are(self._limits) or are(self._limits_by_owner)

    @cached_property
    def _turns(self) -> str | None:
        """Why the arms take turns; None if they need not."""
        if not self.named:
            return "the experiment names no hosts of their own"
        each = [name for names in self.named.values() for name in names]
        if len(set(each)) < len(each):
            return "they share a host"
        environment = self._environment()
        return self._on_own_hosts(environment, each) if environment.provider == "ssh" else self._here(each)

    def _environment(self):
        from labbook.lab import Environment

        return Environment.load(self.environment, keys=False)

    def _on_own_hosts(self, environment, each) -> str | None:
        from labbook.lab.remote.assign import match

        real = match(self.description, environment)
        shared = len({real[name].name for name in each}) < len(each)
        return "they share one of the environment's hosts" if shared else None

    def _here(self, each) -> str | None:
        without = [name for name in each if not self._limits(name).get("memory")]
        if without:
            return f"{', '.join(without)} has no memory limit in lab.yml"
        needed = sum(self._limits(name)["memory"] for name in each) + BESIDE_ARMS
        here = memory_bytes()
        return f"{size_text(needed)} needed at once, {size_text(here)} here" if needed > here else None

    def _limits(self, name) -> dict:
        return self.description.host(name).limits

    def _limits_by_owner(self, name) -> dict:
        """The limits with cores of its own as those of the host itself."""
        limits = dict(self._limits(name))
        return limits | {"cores_of": [name]} if limits.pop("cores", None) else limits


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _words(arms) -> str:
    *first, last = map(str, arms)
    return f"{', '.join(first)} and {last}" if first else last
