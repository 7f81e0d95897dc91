"""What the page "Modelled disks" says of how close one comes to its model."""

import json

from labbook import paths
from labbook.pipeline.book import disk_models
from labbook.pipeline.book.markup import row

KINDS = ("sequential read 128 KB", "random read 128 KB")


def of_round(modelled, log, own):
    return {disk: dict(zip(KINDS, times)) for disk, times in (("modelled", modelled), ("log", log), ("own", own))}


def test_a_modelled_disk_is_set_beside_its_model_and_the_machines_disk(book):
    folder = paths.checkout() / "data/benchmarks/measured"
    folder.mkdir(parents=True, exist_ok=True)
    rounds = [of_round((1.5, 7.5), (1.0, 7.0), (0.5, 0.25)), of_round((1.2, 7.2), (1.1, 7.1), (0.4, 0.4)),
              of_round((1.1, 7.7), (1.0, 7.0), (1.1, 0.7))]
    (folder / "modelled_disk.json").write_text(json.dumps({
        "machine": {"cores": 2, "kernel": "6.1", "load": 0.53},
        "samples": {"hdd_2010": {"rounds": rounds, "late": 0.001, "model_ms": dict(zip(KINDS, (1.0, 7.0)))}}}))
    page = disk_models.measured()
    assert row(disk_models.ROUND_HEADS, (KINDS[0], "1.20 (1.10 to 1.50)", "1.00 (1.00 to 1.10)", "3.00 (1.00 to 3.00)")) in page
    assert row(disk_models.ROUND_HEADS, (KINDS[1], "1.07 (1.03 to 1.10)", "1.00 (1.00 to 1.01)", "18.00 (11.00 to 30.00)")) in page
    assert "medians of 3 rounds" in page and "2 cores with Linux 6.1; the load average was 0.5" in page
    assert "as long as 6.0 sequential ones by fio, 7.0 by the model, and 0.64 on the machine's own disk" in " ".join(page.split())
    assert "0.10% of the replies were late" in page


def test_a_checkout_in_which_no_disk_was_measured_says_so(book):
    assert disk_models.measured() == "*Nothing was measured yet.*\n"
