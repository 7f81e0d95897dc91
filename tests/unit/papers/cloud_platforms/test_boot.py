import math

import pytest

from labbook.papers.cloud_platforms.boot import boot_metrics, boot_rows

ONE = {"called": 100.0, "returned": 100.5, "launched": 103.0, "running": 104.0, "answers": 108.0}
OTHER = {"called": 100.0, "returned": 100.5, "running": 106.0, "answers": 109.0}


def test_of_several_the_last_ones_count():
    found = boot_metrics([ONE, OTHER], 2)
    assert found["all_running_s"] == 6.0 and found["all_ssh_s"] == 9.0
    assert found["mean_running_s"] == 5.0 and found["returned_s"] == 0.5
    assert found["ssh_after_running_s"] == 3.5
    assert found["failed_to_run"] == found["failed_to_answer"] == 0


def test_a_moment_that_not_all_had_has_no_last():
    found = boot_metrics([ONE, OTHER], 2)
    assert math.isnan(found["all_launched_s"])
    assert boot_metrics([ONE], 1)["all_launched_s"] == 3.0


@pytest.mark.parametrize("moments", [[ONE, {"called": 100.0, "returned": 100.5}], [ONE]])
def test_one_that_did_not_start_is_counted_and_leaves_no_time_of_all(moments):
    """Whether the cloud made it and it failed, or never made it."""
    found = boot_metrics(moments, 2)
    assert found["failed_to_run"] == found["failed_to_answer"] == 1
    assert math.isnan(found["all_running_s"]) and found["mean_running_s"] == 4.0


def test_none_at_all():
    found = boot_metrics([], 3)
    assert found["failed_to_run"] == 3 and math.isnan(found["all_ssh_s"])


def test_a_row_for_each():
    rows = boot_rows([ONE, {"called": 101.0}])
    assert list(rows["ok"]) == [True, False]
    assert list(rows["started_s"]) == [0.0, 1.0]
    assert rows["seconds"][0] == 4.0 and math.isnan(rows["seconds"][1])
    assert list(rows["error"]) == ["", ""]


def test_a_row_says_why_its_server_did_not_run():
    rows = boot_rows([ONE, {"called": 100.0}], [None, "No space left on device"])
    assert list(rows["error"]) == ["", "No space left on device"]
