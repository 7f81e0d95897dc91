"""The NAS kernels' results by one process, the arguments of mpirun, and what becomes of their results."""

import json
import math
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines import mpirun
from labbook.workloads.machines import npb as module
from labbook.workloads.machines.machine import Machine
from labbook.workloads.machines.npb import KERNELS, build, facts, latency, npb

ONE_PROCESS = Path(__file__).parent / "one_process"
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not there")
RESULTS = {"kernel": "cg", "size": "S", "ranks": 2, "seconds": 1.5, "mops": 44.0, "verified": True,
           "error": 2e-16, "tolerance": 1e-10, "compiler": "12.2.0", "values": [8.5971775078648, 1e-15],
           "iterations": [0.5, 0.75, 0.25], "runs": [1.5]}
# Of NPB's report, the lines that are read and some of those about them.
REPORT = """
 CG Benchmark Completed.
 Class           =                        S
 Iterations      =                       15
 Time in seconds =                     0.03
 Total processes =                        2
 Mop/s total     =                  2222.50
 Mop/s/process   =                  1111.25
 Verification    =               {}
"""
ADDRESSES = r"""1: lo    inet 127.0.0.1/8 scope host lo\       valid_lft forever preferred_lft forever
5: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0\       valid_lft forever
6: tap1    inet 10.0.0.1/8 scope global tap1
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """This machine as a machine with the kernels for one process, and where these are."""
    folder = tmp_path_factory.mktemp("npb")
    compiler = folder / "mpicc"
    compiler.write_text(f'#!/bin/sh\nexec gcc -I{shlex.quote(str(ONE_PROCESS))} "$@"\n')
    compiler.chmod(0o755)
    host = here_host(folder, "c1")
    return Machine.of(host), build(host, compiler=str(compiler)), str(compiler)


@needs_gcc
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kernel_comes_to_the_published_values(built, kernel):
    load = npb([built[0]], kernel=kernel, size="S", ranks=1, seconds_at_most=60)
    assert load.metrics["verified"] == 1 and load.rows.ok.all()
    assert load.metrics["seconds"] > 0 and load.metrics["mops"] > 0
    assert len(load.rows) == {"ep": 1, "is": 10, "cg": 15, "mg": 4, "ft": 6, "lu": 50, "sp": 100, "bt": 60}[kernel]
    assert load.metrics["swapped_out_mb"] >= 0
    if kernel == "cg":      # of NPB's tables, so that no table of the program's own is believed
        assert math.isclose(load.metrics["zeta"], 8.5971775078648, rel_tol=1e-12)


@needs_gcc
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_run_again_until_the_timed_runs_last_long_enough(built, kernel):
    """Each run begins anew, or its values would not be the published ones."""
    once = npb([built[0]], kernel=kernel, size="S", ranks=1, seconds_at_most=60)
    assert once.metrics["runs"] == 1
    load = npb([built[0]], kernel=kernel, size="S", ranks=1, seconds_at_most=60,
               timed_s=5 * once.metrics["seconds"] + 0.1)
    assert load.metrics["verified"] == 1 and load.metrics["runs"] >= 2
    assert len(load.rows) == load.metrics["runs"] * len(once.rows)
    assert load.rows.seconds.sum() >= load.metrics["seconds"]


@needs_gcc
@pytest.mark.parametrize("arguments", (["S", "ten"], ["S", "-1"], ["S", "nan"], ["S", "1", "2"], ["SW"], []))
def test_a_program_refuses_what_it_does_not_know(built, arguments):
    done = subprocess.run([built[1]["is"], *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "S|W|A|B|C [SECONDS]" in done.stderr


@pytest.mark.parametrize("kernel, size, most", [("ft", "W", 32), ("ft", "A", 64), ("bt", "S", 4), ("lu", "W", 16), ("cg", "S", 64)])
def test_a_kernel_takes_no_more_ranks_than_planes(kernel, size, most):
    assert module.most_ranks(kernel, size) == most


@needs_gcc
def test_a_wrong_value_is_found_out_by_the_program(built, tmp_path):
    machine, _, compiler = built
    host, sources = machine.via, Path(module.__file__).parent / "sources" / "npb"
    source = (sources / "mg.c").read_text()
    shutil.copy(sources / "common.h", tmp_path)
    (tmp_path / "mg.c").write_text(source.replace("-1. / 64, 0}, 0.5307707", "-1. / 65, 0}, 0.5307707"))
    host.run(f"mkdir -p {host.root}/wrong/npb && cd {tmp_path} && "
             f"{compiler} -O1 mg.c -o {host.root}/wrong/npb/mg -lm")
    wrong = Machine("wrong", host, "127.0.0.1", folder=f"{host.root}/wrong")
    load = npb([wrong], kernel="mg", size="S", ranks=1, seconds_at_most=60)
    assert load.metrics["verified"] == 0 and load.metrics["error"] > 1e-8
    assert math.isnan(load.metrics["swapped_out_mb"]) and not load.rows.ok.any()


@needs_gcc
def test_what_is_compiled_is_kept_until_its_sources_change(tmp_path):
    """By a compiler that only writes a file."""
    cc = tmp_path / "cc"
    cc.write_text('#!/bin/sh\n[ "$1" = --version ] && exec gcc --version\nwhile [ "$1" != -o ]; do shift; done\n'
                  'head -c 2000 /dev/zero > "$2"\n')
    cc.chmod(0o755)
    host, compiler = here_host(tmp_path, "c1"), str(cc)
    programs = build(host, compiler=compiler)
    Path(programs["ep"]).write_text("changed by hand")
    assert build(host, compiler=compiler) == programs
    assert Path(programs["ep"]).read_text() == "changed by hand"
    note = Path(programs["ep"]).with_name("built.json")
    note.write_text(note.read_text().replace('"digest": "', '"digest": "0'))
    build(host, compiler=compiler)
    assert Path(programs["ep"]).stat().st_size > 1000
    assert "gcc" in facts(host)["npb_compiler"] and "-O3" in facts(host)["npb_flags"]


def test_without_a_compiler_what_to_install_is_reported(tmp_path):
    with pytest.raises(LabError, match="no nothing-cc") as refusal:
        build(here_host(tmp_path, "c1"), compiler="nothing-cc")
    assert "libopenmpi-dev" in refusal.value.remedy


def test_on_a_users_own_host_nothing_is_put_without_leave(tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho cc 1\n")
    compiler.chmod(0o755)
    host = here_host(tmp_path, "c1")
    host.allow = frozenset()
    with pytest.raises(LabError, match="nothing may be compiled there") as refusal:
        build(host, compiler=str(compiler))
    assert "software" in refusal.value.remedy and not list((tmp_path / "c1").iterdir())
    host.allow = frozenset({"software"})
    assert set(build(host, compiler=str(compiler))) == {*KERNELS, "pingpong"}


def test_what_does_not_compile_is_reported_and_not_taken_for_built(tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo cc 1 || { echo no way >&2; exit 1; }\n')
    compiler.chmod(0o755)
    host = here_host(tmp_path, "c1")
    with pytest.raises(LabError, match="no way"):
        build(host, compiler=str(compiler))
    assert facts(host) == {}


def test_results_of_a_kernel_have_a_row_an_iteration():
    rows, metrics = module.load("cg", RESULTS, wall_s=2.5)
    assert rows.started_s.tolist() == [0, 0.5, 1.25] and rows.iteration.tolist() == [1, 2, 3]
    assert metrics["zeta"] == 8.5971775078648 and metrics["start_s"] == 1.0
    assert metrics["verified"] == 1 and metrics["mops"] == 44 and metrics["runs"] == 1


def test_several_runs_are_not_taken_for_the_time_to_start():
    rows, metrics = module.load("cg", RESULTS | {"seconds": 0.75, "runs": [0.5, 0.75, 1.0]}, wall_s=3.0)
    assert metrics["seconds"] == 0.75 and metrics["runs"] == 3 and metrics["start_s"] == 0.75


def test_no_number_is_a_missing_one():
    results = RESULTS | {"verified": False, "error": None, "values": [None, 1e-15]}
    rows, metrics = module.load("cg", results, wall_s=2.5)
    assert math.isnan(metrics["error"]) and math.isnan(metrics["zeta"])
    assert metrics["verified"] == 0 and not rows.ok.any()
    assert math.isnan(metrics["seconds"]) and math.isnan(metrics["mops"])     # no verdict is by these
    assert metrics["start_s"] == 1.0


def test_the_line_of_json_is_found_among_other_words():
    assert mpirun.parse(f"Warning: {{no}}\n{{not json\n{json.dumps(RESULTS)}\n", "cg") == RESULTS
    with pytest.raises(SystemFailure, match="cg printed no results") as failure:
        mpirun.parse("mpirun noticed that process rank 1 exited on signal 9\n", "cg")
    assert "signal 9" in failure.value.log


def test_the_network_is_the_narrowest_that_has_all():
    assert mpirun.network_of(["10.0.0.4", "10.0.0.9"], ADDRESSES) == "10.0.0.0/24"
    assert mpirun.network_of(["10.0.0.4", "10.1.0.9"], ADDRESSES) == "10.0.0.0/8"
    assert mpirun.network_of(["10.0.0.4", "11.0.0.9"], ADDRESSES) is None


def guests(host, count, **more):
    return [Machine(f"vm{i}", host, f"10.0.0.{i + 4}", key="/k", **more) for i in range(count)]


def test_what_is_swapped_out_is_added_up_over_the_machines(tmp_path):
    host = here_host(tmp_path, "c1")
    assert module.swapped_out_mb([Machine.of(host)]) >= 0
    assert module.sum_mb(["pswpout 1000", "pswpout 500"], 2) == 1500 * 4096 / 1e6
    with pytest.raises(LabError, match="1 of 2 machines"):
        module.sum_mb(["pswpout 1000", "no route to host"], 2)


def test_mpirun_is_told_of_several_machines(tmp_path):
    arguments = mpirun.on_several(guests(here_host(tmp_path, "c1"), 2), 4, "10.0.0.0/24")
    after = {arguments[i]: arguments[i + 1:i + 3] for i in range(len(arguments)) if arguments[i] != "--mca"}
    assert after["--host"][0] == "10.0.0.4:2,10.0.0.5:2" and after["-np"][0] == "4"
    settings = {arguments[i + 1]: arguments[i + 2] for i in range(len(arguments)) if arguments[i] == "--mca"}
    assert settings["btl_tcp_if_include"] == settings["oob_tcp_if_include"] == "10.0.0.0/24"
    assert "-i /k" in settings["plm_rsh_args"] and "-l root" in settings["plm_rsh_args"]


@pytest.mark.parametrize("change, key", [
    ({"kernel": "ua"}, "kernel"), ({"kernel": "bt", "ranks": 8}, "ranks"), ({"size": "D"}, "size"), ({"ranks": 3}, "ranks"),
    ({"ranks": 128}, "ranks"), ({"ranks": 1, "count": 2}, "ranks"), ({"count": 0}, "machines")])
def test_what_cannot_be_run_is_refused(tmp_path, change, key):
    settings = {"kernel": "ep", "size": "S", "ranks": 2, "count": 2} | change
    machines = guests(here_host(tmp_path, "c1"), settings.pop("count"))
    with pytest.raises(InputError) as refusal:
        npb(machines, **settings, seconds_at_most=5)
    assert refusal.value.key == key


def test_machines_that_run_together_are_reached_alike(tmp_path):
    host = here_host(tmp_path, "c1")
    mine = Machine.of(host)
    with pytest.raises(InputError, match="must have the same key"):
        mpirun.check([*guests(host, 1), Machine("vm9", host, "10.0.0.9", key="/other")], 2)
    with pytest.raises(InputError, match="must have the same folder"):
        mpirun.check([*guests(host, 1), mine], 2)
    with pytest.raises(InputError, match="two machines have one address"):
        mpirun.check([mine, mine], 2)
    with pytest.raises(InputError, match="two machines have one address"):
        mpirun.check(guests(host, 1) * 2, 2)
    mpirun.check([mine, *guests(host, 1, folder=mine.folder)], 2)


OTHER_PROGRAMS = {   # what a host and a guest have of Open MPI; ssh runs its last argument here
    "ssh": 'for word; do last=$word; done; case "$*" in *10.0.0.5*) PATH=$OTHER:$PATH;; esac; exec sh -c "$last"',
    "ip": "echo '5: eth0    inet 10.0.0.1/24'",
    "mpirun": '[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" || { echo orted failed; exit 1; }',
    "other/mpirun": "echo 'mpirun (Open MPI) 5.0.5'"}


@pytest.mark.parametrize("count, error, message", [
    (2, LabError, "versions of Open MPI differ: mpirun .* 4.1.4, mpirun .* 5.0.5"), (1, SystemFailure, "failed with")])
def test_a_failure_says_so_where_open_mpi_is_not_the_same(tmp_path, count, error, message):
    (tmp_path / "bin/other").mkdir(parents=True)
    for name, script in OTHER_PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    host = here_host(tmp_path, "c1")
    host.env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "OTHER": f"{tmp_path}/bin/other"}
    machines = [Machine("c1", host, "10.0.0.1"), *guests(host, count)][-2:]
    with pytest.raises(error, match=message):
        mpirun.run(machines, 2, ["/opt/labbook/npb/cg", "S"], 10, "cg S of 2")


def test_without_its_program_what_to_do_is_reported(tmp_path):
    machine = Machine.of(here_host(tmp_path, "c1"))
    with pytest.raises(LabError, match="no program .*/npb/ep"):
        npb([machine], kernel="ep", size="S", ranks=1, seconds_at_most=5)
    with pytest.raises(LabError, match="no program .*/npb/pingpong"):
        latency([machine])


def test_an_upstream_build_is_run_and_read(tmp_path):
    host = here_host(tmp_path, "c1")
    program = tmp_path / "cg.S.x"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{REPORT.format('SUCCESSFUL')}END\n")
    program.chmod(0o755)
    load = npb([Machine.of(host)], kernel="cg", size="S", ranks=1, seconds_at_most=5,
               programs=str(tmp_path))
    assert load.metrics["seconds"] == 0.03 and load.metrics["mops"] == 2222.5
    assert load.metrics["verified"] == 1 and len(load.rows) == 1
    with pytest.raises(LabError, match="lu.S.x nor .*lu.S.1"):
        npb([Machine.of(host)], kernel="lu", size="S", ranks=1, seconds_at_most=5,
            programs=str(tmp_path))


def test_an_upstream_build_that_fails_is_no_success():
    assert module.upstream_result(REPORT.format("UNSUCCESSFUL"), "cg")["verified"] is False
    with pytest.raises(SystemFailure, match="printed no report"):
        module.upstream_result(REPORT.partition("Mop/s total")[0], "cg")
    with pytest.raises(SystemFailure, match="too short"):
        module.upstream_result(REPORT.format("SUCCESSFUL").replace("0.03", "0.00"), "cg")
