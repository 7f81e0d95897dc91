"""Pages of the book that are typed word for word: a clone to type in, and a terminal."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import sparing
from checkout_copy import copy_checkout, with_one_study

from labbook.lab.local.cores import SHARE

SECONDS = 400       # of one command, at most


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A repository with this checkout's files in it, one study in its book, and nothing built or measured."""
    folder = with_one_study(copy_checkout(tmp_path_factory.mktemp("tutorial") / "labbook"))
    git = ("git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *arguments], check=True)
    return folder


@pytest.fixture(scope="module")
def type_in(clone, tmp_path_factory):
    """Type one command in the clone, with its own library; what it printed."""
    programs = tmp_path_factory.mktemp("bin")
    for name, program in (("labbook", "-m labbook.cli"), ("papermill", "-m papermill"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {program} "$@"\n')
        (programs / name).chmod(0o755)
    inherited = {name: value for name, value in os.environ.items()
                 if name == SHARE or not name.startswith("LABBOOK_")}    # beside other tests' labs
    environ = inherited | {"PYTHONSTARTUP": sparing.__file__, "PYTHONPATH": str(clone / "lib"), "PATH": f"{programs}:{os.environ['PATH']}"}

    def typed(command: str) -> str:
        done = subprocess.run(["sh", "-c", command], cwd=clone, env=environ, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    return typed
