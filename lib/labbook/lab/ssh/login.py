"""How SSH reaches a host."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Login:
    """How SSH reaches a host: directly or through a `jump` host. Paths are of this machine."""

    address: str
    user: str
    key: str
    known_hosts: str
    port: int = 22
    jump: "Login | None" = None

    @classmethod
    def from_facts(cls, facts: dict) -> "Login":
        """The inverse of dataclasses.asdict."""
        jump = cls.from_facts(facts["jump"]) if facts["jump"] else None
        return cls(**{**facts, "jump": jump})
