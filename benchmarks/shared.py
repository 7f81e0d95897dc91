"""What the benchmarks share: arguments, what a benchmark needs, processes that take turns, ratios."""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from labbook import paths
from labbook.errors import LabbookError, LabError

ROOT = Path(__file__).resolve().parents[1]
ENDING_S = 60       # a process that was interrupted takes its lab down first


def parser(text: str, rounds: int) -> argparse.ArgumentParser:
    """With what every benchmark takes. `text`: its docstring, the first paragraph of which it says."""
    made = argparse.ArgumentParser(description=text.split("\n\n")[0])
    made.add_argument("--rounds", type=_rounds, default=rounds, help=f"default: {rounds}")
    made.add_argument("--short", action="store_true",
                      help="seconds: the smallest case, one round; to see that it works")
    made.add_argument("--json", type=Path, metavar="FILE", help="keep the rounds or samples there")
    return made


def _rounds(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("1 and more")
    return int(text)


def run(main) -> None:
    """Run a benchmark's `main()`. An error of labbook's is one line; Ctrl-C and SIGTERM end it in order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except LabbookError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")


def check(*, packages=(), artifacts=()) -> None:
    """LabError, with the command that installs it, for what is missing of Debian's packages and of
    the artifacts, and of root or sudo without a password, which labs take."""
    from labbook.pipeline.setup import install    # here, since a timed process imports this file
    from labbook.pipeline.setup.requirements import Need

    needs = [Need(name, "this benchmark") for name in packages]
    missing = [need.name for need, found in install.installed(needs) if not found]
    missing += [str(one) for one in artifacts if not install.is_here(one)]
    if missing:
        raise LabError(f"{', '.join(missing)}: not installed", remedy="Type: "
                       f"{Path(sys.executable).with_name('labbook')} install --benchmarks")
    try:
        install.as_root()
    except LabError:
        raise LabError("labs need root or sudo without a password",
                       remedy=f"Type: sudo {sys.executable} {' '.join(sys.argv)}") from None


def versions(*packages: str) -> dict[str, str]:
    """Of Debian's packages that are installed."""
    from labbook.pipeline.setup import install

    return install.versions(packages)


def log(name: str) -> Path:
    """The empty file that a benchmark's programs print to; the checkout's owner's, whoever runs it."""
    file = paths.build_dir() / "benchmarks" / f"{name}.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"")
    give_to_owner(file, file.parent, paths.build_dir())
    return file


def give_to_owner(*files: Path) -> None:
    """To the owner of this checkout, when root has made them."""
    owner = ROOT.stat()
    if os.geteuid() == 0:
        for path in files:
            os.chown(path, owner.st_uid, owner.st_gid)


def timed(command, file: Path, stop=signal.SIGINT, **settings) -> float:
    """Seconds that a command took; it prints to `file`. LabError with the end of that if it failed.

    An interrupt of ours ends it by the signal `stop`, and waits until it has cleaned up. `settings`: of its
    Popen, such as env.
    """
    began, start = time.monotonic(), file.stat().st_size
    with open(file, "ab") as out:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, **settings)    # a Ctrl-C reaches it once, by us
    try:
        code = process.wait()
    except BaseException:
        process.send_signal(stop)
        process.wait(ENDING_S)
        raise
    if code:
        end = file.read_bytes()[start:][-2000:].decode(errors="replace")
        raise LabError(f"{' '.join(map(str, command))} failed with {code}; {file} ends:\n{end}")
    return time.monotonic() - began


def ratio(ours, theirs) -> str:
    """The median of the rounds' ratios, and their range."""
    found = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def write(file: Path | None, **samples) -> None:
    """Write the samples with what the machine is, if a file is named."""
    if file:
        machine = {"cores": os.cpu_count(), "cpu": platform.processor(), "kernel": platform.release(),
                   "python": platform.python_version(), "load": os.getloadavg()[0]}
        file.write_text(json.dumps({"machine": machine, **samples}, indent=1))
