"""Software of the papers' time from Maven: fetched once, safe to kill, brought to hosts."""

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.paths import cache_dir

COMPLETE = "complete.json"  # written last: each file of the folder and its size
FETCH_SECONDS = 900

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>labbook</groupId><artifactId>fetch</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{0.group}</groupId><artifactId>{0.name}</artifactId><version>{0.version}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True)
class Artifact:
    """A Maven artifact; fetching it brings what it depends on at run time too."""

    group: str
    name: str
    version: str

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        """From `group:name:version`."""
        return cls(*coordinates.split(":"))

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's jars, fetched if it is not there; LabError when that fails."""
    return made(f"{artifact.name}-{artifact.version}", lambda folder: _maven(artifact, folder))


def made(name: str, fill: Callable[[Path], None]) -> Path:
    """The cached folder `name`, filled by `fill(folder)` when it is missing or not whole.

    Runs in parallel wait for one another; what a killed run leaves is never taken for whole.
    """
    shelf = cache_dir() / "artifacts"
    folder, drafts = shelf / name, shelf / ".drafts" / name
    if is_whole(folder):
        return folder
    with _alone(shelf / ".locks" / name):
        if is_whole(folder):
            return folder
        shutil.rmtree(drafts, ignore_errors=True)  # left by killed runs
        drafts.mkdir(parents=True)
        draft = Path(tempfile.mkdtemp(dir=drafts))
        draft.chmod(0o755)
        try:
            fill(draft)
            (draft / COMPLETE).write_text(json.dumps(_sizes(draft), indent=1))
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        finally:
            shutil.rmtree(drafts, ignore_errors=True)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether every file that was there at the end is there in its size."""
    try:
        wanted = json.loads((folder / COMPLETE).read_text())
        return all((folder / file).stat().st_size == size for file, size in wanted.items())
    except (OSError, ValueError):
        return False


def bring(host, folder: Path) -> PurePosixPath:
    """Where `folder`, from `fetch` or `made`, is on the host: copied if it cannot see it."""
    mark = (folder / COMPLETE).read_bytes()
    at_host = host.root / "artifacts" / folder.name
    for place in (PurePosixPath(folder), at_host):
        seen = host.run(f"cat {shlex.quote(str(place / COMPLETE))}", check=False)
        if seen.exit_code == 0 and seen.stdout.strip() == mark.decode().strip():
            return place
    draft = at_host.parent / f".{folder.name}"
    host.run(shlex.join(["rm", "-rf", str(at_host), str(draft)]))
    host.run(shlex.join(["mkdir", "-p", str(draft)]))
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch) / "packed.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(folder, arcname=".")
        host.put(packed, draft / packed.name)
    host.run(f"cd {shlex.quote(str(draft))} && tar -xf packed.tar && rm packed.tar", timeout=300)
    host.run(shlex.join(["mv", "-T", str(draft), str(at_host)]))
    return at_host


def _maven(artifact: Artifact, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="labbook-fetch-") as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM.format(artifact))
        status, said = _bounded(["mvn", "-q", "-B", "-C", "dependency:copy-dependencies",
                                 f"-DoutputDirectory={folder}", "-DincludeScope=runtime"], scratch)
    if status != 0 or not list(folder.glob(f"{artifact.name}-{artifact.version}*.jar")):
        raise LabError(f"cannot fetch {artifact}: mvn ended with {status}\n{_tail(said)}",
                       remedy="See that this machine reaches a Maven repository, then try again")


def _bounded(command: list[str], folder: str) -> tuple[int | str, str]:
    """Exit status and output; the whole process group ends when the time is up or on Ctrl-C."""
    try:
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, text=True,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise LabError("there is no command mvn here", remedy="apt install maven") from None
    try:
        said, _ = process.communicate(timeout=FETCH_SECONDS)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        return f"no result in {FETCH_SECONDS} s", _end_group(process)
    finally:
        if process.returncode is None:
            _end_group(process)


def _end_group(process) -> str:
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _tail(said: str, lines=20) -> str:
    return "\n".join(said.strip().splitlines()[-lines:])


def _sizes(folder: Path) -> dict[str, int]:
    return {str(f.relative_to(folder)): f.stat().st_size
            for f in sorted(folder.rglob("*")) if f.is_file()}


@contextmanager
def _alone(lock: Path):
    """Hold `lock`; the kernel gives it up when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
