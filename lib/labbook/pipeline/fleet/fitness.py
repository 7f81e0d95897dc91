"""Whether a machine of a fleet may measure a study: it has the same code, and the same versions of what is measured."""

from labbook.lab.quantities import size_text
from labbook.study.records.fingerprint import fingerprint

LEAST_FREE_BYTES = 64 * 2**20   # for records


class Fitness:
    """Compares machines with this checkout, and with each other in what this machine lacks. restricted: {machine:
    the studies that it may measure, or None: all}."""

    def __init__(self, studies, restricted=None):
        self._codes = {study: fingerprint(study) for study in studies}
        self._versions = {study: {name: (version, "here") for name, version in of.versions.items()}
                          for study, of in self._codes.items()}
        self._restricted = restricted or {}

    def why_not(self, name: str, study: str, about: dict) -> str | None:
        """Why a machine cannot measure a study, in words, or None. about: see on_machine.about."""
        only, of = self._restricted.get(name), about.get("studies", {}).get(study)
        if only is not None and study not in only:
            return "the fleet file does not give it this study"
        if of is None or "error" in of:
            return of["error"] if of else "it did not say what it has"
        if about["free_bytes"] < LEAST_FREE_BYTES:
            return f"its disk is full: {size_text(about['free_bytes'])} are free for records"
        if of["code"] != self._codes[study].code:
            return ("its checkout has different measuring code; labbook install --fleet FILE copies this "
                    "checkout's code there")
        return self._versions_differ(name, study, of["versions"])

    def _versions_differ(self, name, study, versions) -> str | None:
        known = self._versions[study]
        differing = [f"{package} {version} ({known[package][1]}: {known[package][0]})"
                     for package, version in sorted(versions.items())
                     if package in known and known[package][0] != version]
        if differing:
            return f"other versions: {', '.join(differing)}"
        known |= {package: (version, name) for package, version in versions.items() if package not in known}
        return None
