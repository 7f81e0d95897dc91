"""The files that a study's fingerprint may be of, to notice that one was edited while the study is measured."""

import os

from labbook import paths
from labbook.errors import InputError
from labbook.study.records.fingerprint import LIBRARY, Fingerprint, fingerprint


class CodeFiles:
    """As they are now, of one study. A kernel goes on with the modules and cells that it has, while hosts get the
    files of the checkout: once these differ, a record's fingerprint would name code that did not measure it."""

    def __init__(self, study: str):
        self._study, self._state = study, _state(study)

    def check(self, made_by: Fingerprint) -> None:
        """InputError where files have changed so that the fingerprint is another one than `made_by`."""
        if (now := _state(self._study)) == self._state:
            return
        if fingerprint(self._study).code != made_by.code:
            raise InputError("the code that measures has changed since this run began", key=self._study, allowed=(
                "run it again, in JupyterLab from the notebook's first cell; no measured point is lost"))
        self._state = now


def _state(study: str) -> dict[str, tuple]:
    """{path: (time of its last change, size)}."""
    own = (str(paths.notebook(study)), str(paths.papers(study) / "lab.yml"))
    return {path: (found.st_mtime_ns, found.st_size)
            for path in (*_library(), *own) if (found := _stat(path)) is not None}


def _library():
    for folder, below, names in os.walk(LIBRARY):
        below[:] = [name for name in below if name != "__pycache__"]
        yield from (os.path.join(folder, name) for name in names)


def _stat(path):
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
