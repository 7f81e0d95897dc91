"""What was looked at on a user's hosts before anything starts."""

from dataclasses import dataclass, field

from labbook.lab.remote.permissions import Asked


@dataclass(frozen=True)
class Seen:
    """One thing looked at. `key` is where the environment file says it, such as
    `hosts.rack1.address`; `found` what is there; `remedy` what to do when it is not `ok`."""

    key: str
    what: str
    ok: bool
    why: str
    found: str = ""
    remedy: str = ""

    def words(self) -> str:
        have = f" ({self.found})" if self.found else ""
        return f"{self.key}: {self.what}{have}: {self.why}. {self.remedy}".rstrip()


@dataclass
class Wants:
    """What one real host must have: `asked` of its owner's leave; Debian `packages` (`a | b`:
    either) and `commands`, each with why; `folders` of systems' files and Python programs
    (`programs`: with the library and its packages), which are copied there or must be there."""

    asked: Asked = field(default_factory=Asked)
    packages: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    programs: bool = False
    python: bool = False
    disk_bytes: int = 0


def named(description) -> dict[str, str]:
    """Packages that a study's lab.yml names, for the `packages` of all its hosts' Wants."""
    return {package: "named in the study's lab.yml"
            for package in description.needs.get("packages", ())}
