"""A checkout of the book beside this one, so that what a test runs in it writes nothing here."""

import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def copy_checkout(target: Path) -> Path:
    """Copy all that git knows here, as it is now, to the folder `target`, with the library's bytecode, and lend it the
    packages.

    They are brought up to date before: by the copy's own bootstrap they would become the copy's.
    """
    subprocess.run(["sh", CHECKOUT / "lib" / "bootstrap.sh"], check=True)
    tracked = subprocess.run(["git", "-C", CHECKOUT, "ls-files", "-z"], check=True,
                             capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, tracked):
        if (CHECKOUT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, target / name)    # bytecode is of a file's time
    for compiled in (CHECKOUT / "lib" / "labbook").rglob("__pycache__"):
        there = target / compiled.relative_to(CHECKOUT)
        if there.parent.is_dir():
            shutil.copytree(compiled, there, ignore=shutil.ignore_patterns("*.pyc.*"))
    (target / ".venv").symlink_to(CHECKOUT / ".venv")
    return target


def with_one_study(checkout: Path, study: str = "cms_scalability") -> Path:
    """Take the other studies out of the copy's book: tests/book builds the whole one."""
    contents = checkout / "_toc.yml"
    lines = contents.read_text().splitlines(keepends=True)
    contents.write_text("".join(one for one in lines if "file: notebooks/" not in one or one.endswith(f"/{study}\n")))
    return checkout
