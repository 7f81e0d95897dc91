"""tests/unit mirrors lib/labbook: tests of a/b.py are in a/test_b.py."""

from pathlib import Path

from labbook import paths

TESTS = Path(__file__).parent
# Tests of what is no module of lib/labbook, and what they test.
OTHERS = {
    "test_benchmarks": "benchmarks",
    "test_bootstrap": "lib/bootstrap.sh",
    "test_environment_yml": "environment.yml",
    "test_explore_page": "book/explore.md",
    "test_floors": "the contracts of pyproject.toml",
    "test_listeners": "tests/lab/listeners.py, and SECURITY.md by it",
    "test_many_machines_page": "book/many_machines.md",
    "test_names": "all modules of lib/labbook",
    "test_own_clouds_page": "book/own_clouds.md",
    "test_own_hosts_page": "book/own_hosts.md",
    "test_readme": "README.md and the pages in docs/",
    "test_tree": "the folders of tests/unit",
    "claims/test_missing_values": "claims.comparison and claims.rules, where repeats lack values",
    "claims/test_settings_apart": "claims.comparison and claims.rules, where settings have repeats of their own",
    "lab/environment/test_example": "environments/hosts.example.yml",
    "lab/remote/test_foreign_keeper": "tests/lab/foreign_keeper.py",
    "papers/test_claims_of_papers": "the claims of all papers, by made-up points",
    "papers/test_data": "data/papers",
    "papers/test_grids": "the claims and notebooks of all papers together",
    "papers/test_notebooks": "notebooks",
    "papers/test_places": "the three places of each paper",
    "workloads/machines/test_unixbench_program": "the C program in workloads/machines/sources/unixbench",
}


def test_a_test_file_has_a_module_of_its_name():
    unmatched = set()
    for file in TESTS.rglob("test_*.py"):
        name = file.relative_to(TESTS).with_suffix("")
        if name.name == "test_claims" and name.parent.parent.name == "papers":
            continue        # of data/papers/NAME/claims.yml
        module = paths.checkout() / "lib/labbook" / name.with_name(name.name.removeprefix("test_"))
        if not (module.is_dir() or module.with_suffix(".py").exists()):
            unmatched.add(str(name))
    assert unmatched <= set(OTHERS), (
        f"name these after the modules that they test, or list them in OTHERS: {unmatched - set(OTHERS)}")
    assert set(OTHERS) <= unmatched, f"not in tests/unit any more: {set(OTHERS) - unmatched}"
