"""Which calls metadata clients make: bonnie++'s rules, beside names and orders that it was seen to
use (2.00a, two directories of 1024 files), and what the other patterns come to."""

import os
import random
import re
from collections import Counter

import pytest

from labbook.workloads.files.load import PHASES
from labbook.workloads.files.on_host.calls import (
    CREATE,
    ENTER,
    FUNCTIONS,
    MKDIR,
    NAMES,
    OPS,
    RENAME,
    RMDIR,
    STAT,
    UNLINK,
)
from labbook.workloads.files.on_host.client import PLANS
from labbook.workloads.files.on_host.plans import file_names

SEEN = {False: {0x9: "00000/0000000009KhbOd1z9J", 0x400: "00000/0000000400pv5",
                0x401: "00001/0000000401Y", 0x7ff: "00001/00000007fffcGwKh3t4Bzk"},
        True: {0x0: "00000/Fnpm0000000000", 0x4: "00000/0000000004",
               0xb: "00000/cj000000000b", 0x61e: "00001/YArRkSPxmk000000061e"}}


def spec(path, **given):
    return {"path": str(path), "folder": "f", "directories": 3, "files": 8, "shared": False,
            "pins": None, "homes": None, "seed": 1, **given}


def go(plan, phase, more=lambda: False) -> list[tuple]:
    """Make the phase's calls as a client does: (code, directory, name, other) of each."""
    os.makedirs(f"{plan.spec['path']}/f", exist_ok=True)
    made = []
    for stream, recorded in ((plan.before(phase), False), (plan.calls(phase, more), True)):
        answer = None
        while True:
            try:
                code, directory, *arguments = stream.send(answer)
            except StopIteration:
                break
            answer = FUNCTIONS[code](*arguments)
            if recorded:
                made.append((code, directory, *arguments[1:]))
    return made


def files_below(path) -> set[str]:
    return {name for _, _, names in os.walk(path) for name in names}


@pytest.mark.parametrize("letters_first", SEEN)
def test_names_and_directories_are_bonnies(letters_first):
    names = file_names(1024, 2, random.Random(1), letters_first)
    assert [len(of) for of in names] == [1025, 1023]
    pattern = r"[a-zA-Z0-9]{0,12}"
    for i, seen in SEEN[letters_first].items():
        place, _, name = seen.partition("/")
        ours = names[int(place)][i if i < 1025 else i - 1025]
        number = f"{i:010x}"
        wanted = f"{pattern}{number}" if letters_first else f"{number}{pattern}"
        assert re.fullmatch(wanted, name) and re.fullmatch(wanted, ours)
    assert len({name for of in names for name in of}) == 2048


def test_sequential_goes_by_the_directories_and_random_by_chance(tmp_path):
    plan = PLANS["bonnie"](spec(tmp_path), 0)
    made = go(plan, "sequential_create")
    assert [code for code, *_ in made] == [CREATE] * 24
    assert [directory for _, directory, *_ in made] == [0] * 9 + [1] * 9 + [2] * 6
    seen = go(plan, "sequential_stat")
    assert [code for code, *_ in seen] == ([ENTER] + [STAT] * 9) * 2 + [ENTER] + [STAT] * 6
    assert {name for _, _, name, _ in seen if "/" not in name} > files_below(tmp_path)
    gone = go(plan, "sequential_delete")
    assert [code for code, *_ in gone][-4:] == [RMDIR] * 4 and not os.listdir(tmp_path / "f")
    created = [name for _, _, name, _ in go(plan, "random_create")]
    stats = [name for _, _, name, _ in go(plan, "random_stat")]
    assert sorted(created) == sorted(stats) and created != stats
    deleted = [name for code, _, name, _ in go(plan, "random_delete") if code == UNLINK]
    assert sorted(deleted) == sorted(created) and deleted != stats
    assert not os.listdir(tmp_path / "f")


def test_a_longer_phase_has_further_sets_to_go_through(tmp_path):
    plan, turns = PLANS["bonnie"](spec(tmp_path), 0), iter([True, True, False])
    made = go(plan, "random_create", lambda: next(turns))
    assert Counter(code for code, *_ in made)[CREATE] == 3 * 24
    turns = iter([True, False])
    assert len(go(plan, "random_stat", lambda: next(turns))) == 2 * 3 * 24
    gone = Counter(code for code, *_ in go(plan, "random_delete", lambda: True))
    assert gone == {UNLINK: 3 * 24, RMDIR: 3 * 4}


def test_shared_directories_are_the_same_and_files_are_not(tmp_path):
    plans = [PLANS["bonnie"](spec(tmp_path, shared=True), number) for number in range(2)]
    for plan in plans:
        go(plan, "sequential_create")
    assert len(os.listdir(tmp_path / "f")) == 1 and len(files_below(tmp_path)) == 48
    assert Counter(code for code, *_ in go(plans[0], "sequential_stat")) == {ENTER: 3, STAT: 24}
    for plan in plans:
        go(plan, "sequential_delete")
    assert not files_below(tmp_path)


def test_pins_go_round_the_directories():
    plans = [PLANS["bonnie"](spec("/", pins=[0, 1]), number) for number in range(2)]
    assert [[plan.pin(i) for i in range(3)] for plan in plans] == [[0, 1, 0], [1, 0, 1]]
    assert PLANS["bonnie"](spec("/", pins=[0, 1], shared=True), 1).pin(0) == 0
    assert PLANS["bonnie"](spec("/"), 1).pin(0) is None


def test_directories_are_made_in_homes_in_turn_which_stay(tmp_path):
    homes = ["a", "b"]
    for home in homes:
        (tmp_path / home).mkdir()
    plans = [PLANS["bonnie"](spec(tmp_path, homes=homes), number) for number in range(2)]
    for plan in plans:
        go(plan, "sequential_create", iter([True, False]).__next__)
    made = {home: sorted(os.listdir(tmp_path / home)) for home in homes}
    assert made["a"] == sorted(f"f-sequential_create-{n}.{s}-{i:05d}" for n, s, i in (
        (0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 2), (1, 0, 1), (1, 1, 1)))
    assert len(made["b"]) == 6 and len(files_below(tmp_path)) == 96
    assert os.listdir(tmp_path / "f") == []
    for plan in plans:
        assert Counter(code for code, *_ in go(plan, "random_stat")) == {STAT: 48}
        assert Counter(code for code, *_ in go(plan, "sequential_delete")) == {ENTER: 6, UNLINK: 48, RMDIR: 6}
    assert {home: os.listdir(tmp_path / home) for home in homes} == {"a": [], "b": []}


def test_the_same_seed_gives_the_same_calls(tmp_path):
    def calls(number, seed):
        plan = PLANS["mixed"](spec(tmp_path / f"{random.random()}", seed=seed), number)
        return [call for call in go(plan, "mixed")]

    assert calls(0, 1) == calls(0, 1)
    assert calls(0, 1) != calls(1, 1) != calls(1, 2)


def test_mixed_calls_keep_about_as_many_files(tmp_path):
    plan = PLANS["mixed"](spec(tmp_path, files=400), 0)
    found = Counter(code for code, *_ in go(plan, "mixed"))
    assert sum(found.values()) == 1200 and set(found) == {STAT, CREATE, UNLINK, RENAME, NAMES}
    assert found[STAT] > 2 * found[CREATE] and found[NAMES] < found[UNLINK]
    assert len(files_below(tmp_path)) == 1200 + found[CREATE] - found[UNLINK]


def test_mixed_calls_go_on_when_all_files_are_gone(tmp_path):
    plan = PLANS["mixed"](spec(tmp_path, directories=1, files=2), 0)
    made = go(plan, "mixed", iter([True] * 200 + [False]).__next__)
    assert len(made) > 400   # each of them came out, or go() would have raised


def test_renames_stay_in_the_directory_or_cross_to_the_next(tmp_path):
    plan = PLANS["renames"](spec(tmp_path), 0)
    for phase, step in (("rename", 0), ("rename_across", 1)):
        made = go(plan, phase)
        assert len(made) == 24 and {code for code, *_ in made} == {RENAME}
        for _, directory, name, other in made:
            assert int(name[:5]) == directory and int(other[:5]) == (directory + step) % 3
    assert len(files_below(tmp_path)) == 24


@pytest.mark.parametrize("pattern, depth", [("deep", 3), ("wide", 1)])
def test_trees_are_as_deep_as_asked_and_gone_after(tmp_path, pattern, depth):
    plan = PLANS[pattern](spec(tmp_path), 5)
    found = {phase: Counter(code for code, *_ in go(plan, phase)) for phase in PHASES[pattern][:4]}
    assert found["mkdir"][MKDIR] == 1 + 3 and found["create"] == {CREATE: 24}
    assert found["stat"] == {STAT: 24} and found["readdir"] == {NAMES: 3}
    deepest = max(root.count("/") for root, _, _ in os.walk(tmp_path))
    assert deepest - str(tmp_path).count("/") == 3 + depth   # f/trees-5/0-5/...
    assert go(plan, "delete")[-1][0] == RMDIR
    assert os.listdir(tmp_path / "f" / "trees-5") == []


def test_each_pattern_has_a_plan_and_each_call_a_name():
    assert set(PLANS) == set(PHASES) and len(OPS) == len(FUNCTIONS)


@pytest.mark.parametrize("pattern", PLANS)
def test_no_two_clients_draw_the_same(tmp_path, pattern):
    drawn = [PLANS[pattern](spec(tmp_path), number).draw.sample(range(1000), 9)
             for number in (0, 1, 2, 0)]
    assert drawn[0] == drawn[3] and len({*map(tuple, drawn)}) == 3
