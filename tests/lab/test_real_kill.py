"""SIGKILL of the driver of hosts over SSH, at seeded random moments: the next command leaves the
hosts as they were, and what was measured is kept."""

import random
import shutil
import signal
import time

import pytest
from foreign import foreign_hosts
from real_labs import ALLOW, HERE, ROLES, Checkout, as_before, environment
from small_labs import new_id

SEED = 20100826
MOMENTS = [("raise", 0.0, 1.0), ("raise", 1.0, 4.0), ("measure", 0.0, 0.3), ("measure", 0.0, 0.3),
           ("down", 0.0, 0.4), ("down", 0.4, 1.5)]


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2"], jump="bastion") as made:
        yield made


@pytest.fixture
def driver(place, tmp_path):
    made = Driver(tmp_path)
    made.paper("tiny", {"sites": ["a"], "hosts": {"h1": {"site": "a", "role": "db"}}})
    shutil.copy(HERE / "real_study.py", tmp_path)
    (tmp_path / "notebooks" / "tiny.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    environment(place, tmp_path / "environments", roles=ROLES, allow=ALLOW)
    yield made
    made.labbook("down")   # when the test failed half-way


class Driver(Checkout):
    def __init__(self, folder):
        super().__init__(folder)
        self.log, self.lab = folder / "log", new_id()

    def begin(self):
        return self.start(HERE / "real_study.py", self.log, self.lab,
                          stderr=open(self.folder / "stderr", "a"))

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def wait_for(self, word, process, count=1, limit=120):
        until = time.monotonic() + limit
        while sum(line.startswith(word) for line in self.lines()) < count:
            assert process.poll() is None, (self.folder / "stderr").read_text()
            assert time.monotonic() < until, f"{word} never came"
            time.sleep(0.002)

    def records(self):
        return {path.stem for path in self.folder.glob("data/records/**/[!.]*.parquet")
                if ".series." not in path.name}

    def killed(self, word, earliest, latest, chance):
        """Kill a run so long after it wrote `word`, or sooner where it has ended by then."""
        count, after_s = chance.randint(1, 3) if word == "measure" else 1, chance.uniform(earliest, latest)
        while not self._is_hit(word, count, after_s):
            shutil.rmtree(self.folder / "data/records")
            self.log.unlink()
            after_s /= 2

    def _is_hit(self, word, count, after_s):
        process = self.begin()
        self.wait_for(word, process, count=count)
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        return is_killed(process)


def is_killed(process):
    """Whether SIGKILL ended the process, and not its own end."""
    code = process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("number", range(len(MOMENTS)))
def test_killed_at_a_random_moment_down_leaves_nothing(place, driver, number):
    with as_before(place):
        driver.killed(*MOMENTS[number], random.Random(SEED + number))
        code, output = driver.labbook("down")
        assert code == 0, output
        assert driver.standing() == []


def test_killed_again_and_again_the_next_run_goes_on_and_cleans(place, driver):
    """No `down` between: the run that follows takes down what is there, and metrics the rest."""
    with as_before(place):
        driver.killed("raise", 0.5, 3.0, random.Random(SEED))
        driver.killed("measure", 0.0, 0.3, random.Random(SEED + 1))
        done, began = driver.records(), len(driver.lines())
        process = driver.begin()
        assert process.wait(180) == 0, (driver.folder / "stderr").read_text()
        again = {line.split()[1] for line in driver.lines()[began:] if line.startswith("measure")}
        assert not again & done, "a finished point was measured twice"
        assert driver.records() == done | again and len(driver.records()) == 4
        assert driver.standing() == []


def down_is_hit(driver, after_s):
    down = driver.start("-m", "labbook.cli", "down")
    time.sleep(after_s)
    down.kill()
    return is_killed(down)


def test_down_itself_killed_is_finished_by_the_next(place, driver):
    with as_before(place):
        after_s = random.Random(SEED).uniform(0.5, 1.5)
        driver.killed("up", 0.0, 0.1, random.Random(SEED))
        while not down_is_hit(driver, after_s):
            driver.log.unlink()
            driver.killed("up", 0.0, 0.1, random.Random(SEED))
            after_s /= 2
        code, output = driver.labbook("down")
        assert code == 0, output
        assert driver.standing() == []
