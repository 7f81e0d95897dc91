"""The files that a study's fingerprint may be of, to notice that one was edited while the study is measured."""

import os

from labbook import paths
from labbook.errors import InputError
from labbook.study.records.fingerprint import LIBRARY, Fingerprint, fingerprint, measuring_files

AGAIN = "run it again, in JupyterLab after a restart of the kernel; no measured point is lost"


class CodeFiles:
    """As they are now, of one study. A kernel goes on with the modules and cells that it has, while hosts get the
    files of the checkout: once these differ, a record's fingerprint would name code that did not measure it."""

    def __init__(self, study: str):
        self._study, self._state = study, _state(_files(study))
        self._edited = {path for path in _library() if self._state.get(path) != AT_IMPORT.get(path)}

    def check(self, made_by: Fingerprint) -> None:
        """InputError where files have changed so that the fingerprint is another one than `made_by`, or where one
        that measures had changed before it was taken, but after this process had imported labbook."""
        if edited := self._edited and self._edited & measuring_files(self._study):
            raise InputError(f"{min(edited)} has changed since this kernel imported it", key=self._study, allowed=AGAIN)
        self._edited = set()
        if (now := _state(_files(self._study))) == self._state:
            return
        if fingerprint(self._study).code != made_by.code:
            raise InputError("the code that measures has changed since this run began", key=self._study, allowed=AGAIN)
        self._state = now


def _files(study: str):
    return *_library(), str(paths.notebook(study)), str(paths.papers(study) / "lab.yml")


def _state(files) -> dict[str, tuple]:
    """{path: (time of its last change, size)} of those files that are there."""
    return {path: (found.st_mtime_ns, found.st_size) for path in files if (found := _stat(path)) is not None}


def _library():
    for folder, below, names in os.walk(LIBRARY):
        below[:] = [name for name in below if name != "__pycache__"]
        yield from (os.path.join(folder, name) for name in names)


def _stat(path):
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


AT_IMPORT = _state(_library())
