"""Programs in C, compiled on a host once: made anew when their sources or the compiler changed."""

import hashlib
import json
import shlex
from pathlib import Path, PurePosixPath

from labbook.errors import LabError

TOLD = "built.json"     # written last, so that a folder with it is whole
SECONDS = 120


def compiled(host, folder, sources: list[Path], programs: dict[str, list[str]], *, compiler: str,
             flags: tuple[str, ...], packages: tuple[str, ...]) -> dict[str, str]:
    """{program: its path on the host}.

    sources: put into the folder under their names. programs: what follows `compiler FLAGS -o NAME`
    for each. On a user's own host the packages are installed where that is allowed. LabError, with
    what to do, without the compiler or where nothing may be put; with its words when it fails.
    """
    folder = PurePosixPath(host.root / folder)
    if host.is_remote and host.may("packages"):
        from labbook.lab.remote.packages import provide

        provide(host, packages)
    told = {"digest": _digest(sources, programs), "compiler": _version(host, compiler, packages),
            "flags": " ".join(flags)}
    if facts(host, folder) != told:
        if not host.may("software"):
            raise LabError(f"{host.name}: {folder} has not what would be compiled now, and nothing "
                           "allows to put it there", remedy="Add software to the host's `allow`")
        host.run(f"rm -rf {_quoted(folder)} && mkdir -p {_quoted(folder)}")
        for source in sources:
            host.put(source, folder / source.name)
        for name, words in programs.items():
            line = shlex.join([compiler, *flags, "-o", name, *words])
            host.run(f"cd {_quoted(folder)} && {line}", timeout=SECONDS)
        host.put(json.dumps(told), folder / TOLD)
    return {name: str(folder / name) for name in programs}


def facts(host, folder) -> dict:
    """digest, compiler and flags of what was compiled in the folder; none if nothing was."""
    seen = host.run(f"cat {_quoted(PurePosixPath(host.root / folder) / TOLD)}", check=False)
    try:
        return json.loads(seen.stdout) if seen.exit_code == 0 else {}
    except ValueError:
        return {}


def facts_of(host, folder, name: str) -> dict:
    """{name_compiler: as it names itself, name_flags}; nothing where nothing was compiled."""
    found = facts(host, folder)
    return {f"{name}_{key}": found[key] for key in ("compiler", "flags") if key in found}


def _version(host, compiler, packages) -> str:
    seen = host.run(f"{compiler} --version", check=False)
    if seen.exit_code:
        raise LabError(f"{host.name}: no {compiler} there", remedy=(
            f"Type: apt-get install {' '.join(packages)}; in the study's lab.yml name them: "
            f"needs: {{packages: [{', '.join(packages)}]}}"))
    return seen.stdout.splitlines()[0]


def _digest(sources, programs) -> str:
    digest = hashlib.sha256(json.dumps(programs, sort_keys=True).encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def _quoted(path) -> str:
    return shlex.quote(str(path))
