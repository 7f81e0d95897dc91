"""A tree whose metadata differ, made here in a folder of this machine."""

import os

from labbook.workloads.files.on_host import sample_tree as sample_tree_host


def made(folder, seed=1):
    number = sample_tree_host.make(str(folder), 3, 20, None, None, seed)
    return number, [path for path in sorted(folder.rglob("*")) if path != folder]


def test_the_names_are_as_many_as_reported(tmp_path):
    number, paths = made(tmp_path / "tree")
    assert number == len(paths) == 3 * (1 + 20 + 2 * 2)


def test_metadata_differ_in_every_way(tmp_path):
    _, paths = made(tmp_path / "tree")
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    stats = [path.stat() for path in files]
    assert len({one.st_mode for one in stats}) > 3 and {one.st_nlink for one in stats} == {1, 2}
    assert 0 in {one.st_size for one in stats} and len({one.st_size for one in stats}) > 5
    assert len({one.st_mtime_ns for one in stats}) > 40
    assert sum(path.is_symlink() for path in paths) == 6
    assert any("user.labbook" in os.listxattr(path) for path in files)


def test_a_seed_gives_the_same_tree(tmp_path):
    one, other = ([(path.name, path.lstat().st_size, path.lstat().st_mode) for path in made(tmp_path / name)[1]]
                  for name in "ab")
    assert one == other
