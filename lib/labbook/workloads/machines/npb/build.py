"""The kernels' programs, compiled where they run, or where an image of guests is made."""

from pathlib import Path

from labbook.workloads.machines import compiled

SOURCES = ("common.h", "ep.c", "is.c", "cg.c", "mg.c", "ft.c", "pingpong.c")
PROGRAMS = ("ep", "is", "cg", "mg", "ft", "pingpong")
FOLDER = "npb"
COMPILER = "mpicc"
# No -march=native: a guest's processor need not be the one that compiled.
FLAGS = ("-O3", "-std=gnu11")
PACKAGES = ("gcc", "libc6-dev", "libopenmpi-dev", "openmpi-bin")


def build(host, folder=f"benchmarks/{FOLDER}", compiler: str = COMPILER) -> dict[str, str]:
    """{kernel: path of its program on the host}, and that of `pingpong`; compiled if need be."""
    here = Path(__file__).parents[1] / "sources" / FOLDER
    return compiled.compiled(
        host, folder, [here / name for name in SOURCES],
        {name: [f"{name}.c", "-lm"] for name in PROGRAMS}, compiler=compiler, flags=FLAGS,
        packages=PACKAGES)


def facts(host, folder=f"benchmarks/{FOLDER}") -> dict:
    """The compiler, as it names itself, and its flags."""
    return compiled.facts_of(host, folder, FOLDER)
