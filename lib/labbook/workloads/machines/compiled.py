"""Programs in C, compiled on a host once, and again when their sources or the compiler change."""

import hashlib
import json
import shlex
from pathlib import Path, PurePosixPath

from labbook.errors import LabError

STAMP = "built.json"    # written last, so that a folder with it is complete
SECONDS = 120


def compiled(host, folder, sources: list[Path], programs: dict[str, list[str]], *, compiler: str,
             flags: tuple[str, ...], packages: tuple[str, ...]) -> dict[str, str]:
    """{program: its path on the host}.

    sources: copied into the folder under their names. programs: the arguments after `compiler FLAGS
    -o NAME`, of each. On a user's own host the packages are installed if that is allowed. LabError,
    with a remedy, when there is no compiler or nothing may be copied; with its output when it fails.
    """
    folder = PurePosixPath(host.root / folder)
    if host.is_remote and host.may("packages"):
        from labbook.lab.remote.packages import provide

        provide(host, packages)
    built = {"digest": _digest(sources, programs), "compiler": _version(host, compiler, packages),
            "flags": " ".join(flags)}
    if facts(host, folder) != built:
        if not host.may("software"):
            raise LabError(f"{host.name}: {folder} is not up to date, and nothing may be "
                           "compiled there", remedy="Add software to the host's `allow`")
        host.run(f"rm -rf {_quoted(folder)} && mkdir -p {_quoted(folder)}")
        for source in sources:
            host.put(source, folder / source.name)
        for name, arguments in programs.items():
            line = shlex.join([compiler, *flags, "-o", name, *arguments])
            host.run(f"cd {_quoted(folder)} && {line}", timeout=SECONDS)
        host.put(json.dumps(built), folder / STAMP)
    return {name: str(folder / name) for name in programs}


def facts(host, folder) -> dict:
    """digest, compiler and flags of what was compiled in the folder; {} without."""
    seen = host.run(f"cat {_quoted(PurePosixPath(host.root / folder) / STAMP)}", check=False)
    try:
        return json.loads(seen.stdout) if seen.exit_code == 0 else {}
    except ValueError:
        return {}


def facts_of(host, folder, name: str) -> dict:
    """{name_compiler: its version line, name_flags}; {} when nothing was compiled."""
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
