"""Limits of control groups, read from files as both versions write them."""

import math

import pytest

from labbook.pipeline.setup import container_limits


@pytest.fixture
def groups(tmp_path):
    """write({file: text}, line of /proc/self/cgroup) -> arguments of the functions."""
    def write(files: dict, line: str):
        for name, text in files.items():
            (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "groups" / name).write_text(f"{text}\n")
        (tmp_path / "own").write_text(f"{line}\n")
        return tmp_path / "groups", tmp_path / "own"
    return write


@pytest.mark.parametrize("files, line, cores, memory", [
    ({"cpu.max": "150000 100000", "memory.max": "max"}, "0::/", 1.5, math.inf),
    ({"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000", "a/memory.max": "1048576"}, "0::/a/b", 2, 1 << 20),
    ({"a/cpu.max": "100000 100000"}, "0::/other", math.inf, math.inf),      # another's
    ({"cpu/d/cpu.cfs_quota_us": "50000", "cpu/d/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/d", 0.5, math.inf),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/", math.inf, math.inf),
    ({"memory/memory.limit_in_bytes": "9223372036854771712"}, "9:memory:/", math.inf, math.inf),
    ({"memory/memory.limit_in_bytes": "4096"}, "9:memory:/", math.inf, 4096),
])
def test_the_least_limit_of_a_group_and_those_above_it_counts(groups, files, line, cores, memory):
    there = groups(files, line)
    assert (container_limits.cores(*there), container_limits.memory(*there)) == (cores, memory)


def test_a_machine_without_control_groups_has_no_limit(tmp_path):
    assert container_limits.cores(tmp_path / "none", tmp_path / "no file") == math.inf
