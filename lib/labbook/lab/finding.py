"""The result of one check, on this machine or on a user's host."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One requirement: `why` it is needed, what was `found`, and the `remedy` when it is not `ok`.

    `key` is where an environment file names it, such as `hosts.rack1.address`; empty for this
    machine. `studies` are the names of the studies that need it.
    """

    key: str
    name: str
    ok: bool
    why: str
    found: str = ""
    remedy: str = ""
    studies: tuple[str, ...] = ()

    def words(self) -> str:
        """What is missing, why, for whom, and what to do: a sentence or two."""
        where = f"{self.key}: " if self.key else "missing: "
        found = f" ({self.found})" if self.found else ""
        whom = f"; needed by {', '.join(self.studies)}" if self.studies else ""
        return f"{where}{self.name}{found}: {self.why}{whom}. {self.remedy}".rstrip()
