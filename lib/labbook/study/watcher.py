"""What the hosts of a lab do while a point is measured: the series `hosts` of its record.

Nothing that fails here makes a point fail; its record then has no such series.
"""

from contextlib import suppress

from labbook.lab.series import watch

NAME = "hosts"      # of the series


class Watcher:
    """Watches a study's lab, from one point to the next."""

    def __init__(self):
        self._lab, self._samplers, self._first = None, [], []

    def begin(self, lab) -> None:
        """A point begins: what was sampled before is dropped."""
        with suppress(Exception):
            if lab is not self._lab:
                self.close()
                self._samplers, self._lab = watch.start(lab), lab
                lab.before_down(self.close)
            self._first = [samples[-1:] for samples in self._take()]

    def table(self):
        """DataFrame of what was sampled since `begin`, as labbook.lab.series.watch.table describes it; None
        without samples."""
        with suppress(Exception):
            found = watch.table([first + more for first, more in zip(self._first, self._take(), strict=True)])
            return found if len(found) else None

    def _take(self) -> list[list]:
        try:
            return [sampler.take() for sampler in self._samplers]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the samplers."""
        samplers, self._samplers, self._lab, self._first = self._samplers, [], None, []
        for sampler in samplers:
            sampler.close()
