"""The top of a study's page: where and until when its verdicts were measured."""

from labbook.pipeline.book import opening


def judged(verdict, cpu="", to=""):
    return {"verdict": verdict, "id": "a", "level": 0.95, "n": 6, "rule": {"name": "above", "value": 0},
            "conditions": {"cpu": cpu, "cores": 2, "to": f"{to} 10:00+00:00"} if cpu else None}


def test_each_machine_of_the_verdicts_is_named_with_its_last_day():
    rows = [judged("replicated", "Intel", "2026-11-20"), judged("open", "AMD", "2026-11-29"), judged("open"),
            judged("replicated", "Intel", "2026-11-27")]
    assert opening._sure(rows).endswith(
        " Measured until 2026-11-27 on Intel, 2 cores; until 2026-11-29 on AMD, 2 cores.")
    assert opening._sure([judged("open")]).endswith("decided wrongly.")
    assert opening._sure([judged("not run")]) == "Nothing is judged yet."


def test_what_the_last_run_judged_is_told_from_what_is_published():
    rows = [judged("replicated") | {"from_set": "intel"}, judged("open") | {"from_set": None},
            judged("not run") | {"from_set": None}]
    assert opening._by_whom(rows) == ", of which the last run here judged 1 and 1 are as published"
    assert opening._by_whom(rows[:1]) == opening._by_whom(rows[1:]) == ""
