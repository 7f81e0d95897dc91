"""The tests' program, compiled where it runs, or where an image of guests is made."""

from pathlib import Path, PurePosixPath

from labbook.workloads.machines import compiled

SOURCES = ("main.c", "dhrystone.c", "whetstone.c", "kernel_calls.c", "shell.c")
BESIDE = ("bench.h", "script.sh")
PROGRAM = "unixbench_style"
FOLDER = "unixbench"
COMPILER = "gcc"
FLAGS = ("-O2", "-std=gnu11")
PACKAGES = ("gcc", "libc6-dev")


def build(host, folder=f"benchmarks/{FOLDER}", compiler: str = COMPILER) -> str:
    """Path of the program on the host; its script lies beside it. Compiled if need be."""
    here = Path(__file__).parents[1] / "sources" / FOLDER
    made = compiled.compiled(
        host, folder, [here / name for name in SOURCES + BESIDE],
        {PROGRAM: [*SOURCES, "-lm"]}, compiler=compiler, flags=FLAGS, packages=PACKAGES)
    return str(PurePosixPath(made[PROGRAM]))


def facts(host, folder=f"benchmarks/{FOLDER}") -> dict:
    """The compiler, as it names itself, and its flags."""
    return compiled.facts_of(host, folder, FOLDER)
