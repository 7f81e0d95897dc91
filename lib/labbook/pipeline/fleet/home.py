"""Records of a fleet's machines come home: each is written whole, or not at all."""

from labbook import paths
from labbook.study.records.record import KEY, Records
from labbook.study.records.sealed import Damaged


class Home:
    """The folder of a fleet's records. `folder`: its name in the place of a machine's id."""

    def __init__(self, folder: str):
        self.folder = folder

    def records(self, study: str, experiment: str) -> Records:
        return Records(paths.records_dir() / self.folder / study / experiment)

    def take(self, study: str, experiment: str, key: str, files: dict) -> str | None:
        """Write the record of a point; None, or why it was refused."""
        if not KEY.fullmatch(key):
            return f"{key!r} is no key of a point"
        try:
            self.records(study, experiment).take(key, files)
        except Damaged as error:
            return f"the record of {key} came damaged: {error}"
        return None

    def take_failure(self, study: str, experiment: str, key: str, failure: dict, trace: str) -> None:
        """Write the failure record of a point, unless it has a later record."""
        if not KEY.fullmatch(key):
            return
        records = self.records(study, experiment)
        meta = records.meta(key)
        if meta is None or _ended(meta) < _ended(failure):
            records.write_failure(key, failure, trace)


def _ended(meta: dict) -> float:
    """When a measurement or an attempt ended, epoch s; 0 where nothing says so."""
    return meta.get("provenance", {}).get("during", {}).get("ended", 0.0)
