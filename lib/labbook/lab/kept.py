"""The lab that `labbook up STUDY` keeps up, for another process to try things in."""

from labbook import paths
from labbook.lab.lab import Lab


def find(study: str) -> Lab | None:
    """The lab of a study that this checkout keeps up, None without one. Nobody owns it then, so that
    `labbook down` takes it down as before."""
    here = str(paths.checkout())
    found = [one for one in Lab.list() if one.keep and (one.study, one.checkout) == (study, here)]
    if not found:
        return None
    lab = Lab.attach(found[-1].id)
    lab._ownership.release()
    return lab
