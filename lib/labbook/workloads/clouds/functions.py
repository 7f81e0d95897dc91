"""The functions of a cloud's client, one by one, each as works or fails with what was seen.

A function takes the Ground and returns (works, evidence, numbers). What the system under test does
wrong is a result; a wrong input is raised.
"""

import math
import time
from dataclasses import dataclass

import pandas as pd

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.clouds import function_disks as disks
from labbook.workloads.clouds import function_servers as servers
from labbook.workloads.clouds.testbed import Ground

FUNCTIONS = {
    "images": servers.images, "vm_types": servers.vm_types, "quota": servers.quota,
    "upload_image": servers.upload_image, "delete_image": servers.delete_image,
    "run_one": servers.run_one, "run_several": servers.run_several, "run_all": servers.run_all,
    "servers_listed": servers.servers_listed, "each_rebooted": servers.each_rebooted,
    "reboot_several": servers.reboot_several, "terminate": servers.terminate,
    "create_volume": disks.create_volume, "attach_usual_name": disks.attach_usual_name,
    "attach_other_name": disks.attach_other_name, "write_volume": disks.write_volume,
    "detach": disks.detach, "delete_volume": disks.delete_volume,
    "snapshot_fresh": disks.snapshot_fresh, "installed_snapshot": disks.installed_snapshot,
}
NUMBERS = ("failed_to_run", "rebooted_share", "others_rebooted", "named_as_asked", "snapshot_booted", "other_works")
# The report's four commands had problems; of the others it says nothing.
OF_THE_REPORT = ("run_all", "reboot_several", "attach_usual_name", "attach_other_name",
                 "snapshot_fresh", "installed_snapshot")


@dataclass(frozen=True)
class Load:
    """`rows`: one row: started_s, seconds, ok, evidence. `metrics`: works (1 or 0), evidence (text),
    and NUMBERS, NaN where they are none of the function's: failed_to_run, rebooted_share,
    others_rebooted, named_as_asked, snapshot_booted, and other_works (works, of a function that the
    report does not name)."""

    rows: pd.DataFrame
    metrics: dict


def cloud_function(name: str, ground: Ground) -> Load:
    """Try one function on the ground: what the cloud fails at, or refuses, is a function that fails.
    The next one is not tried on servers that one has failed on.

    InputError for a name that is none; LabError when the cloud or the lab cannot be reached.
    """
    if name not in FUNCTIONS:
        raise InputError(f"no function {name!r}", key="function", allowed=sorted(FUNCTIONS))
    begin = time.monotonic()
    try:
        works, evidence, numbers = FUNCTIONS[name](ground)
    except (SystemFailure, LabError) as error:
        if isinstance(error, LabError) and not getattr(error, "refused", False):
            raise
        works, evidence, numbers = False, str(error).partition("\n")[0], _failed(name, ground)
    if not works:
        ground.abandon()
    if name not in OF_THE_REPORT:
        numbers["other_works"] = works
    metrics = {"works": float(works), "evidence": evidence,
                **{number: float(numbers.get(number, math.nan)) for number in NUMBERS}}
    rows = pd.DataFrame([{"started_s": 0.0, "seconds": time.monotonic() - begin, "ok": bool(works),
                          "evidence": evidence}])
    return Load(rows, metrics)


def _failed(name, ground) -> dict:
    """The numbers of a function that did not come to them."""
    if name == "run_all":
        return {"failed_to_run": ground.fit}
    metric = {"snapshot": "snapshot_booted", "attach": "named_as_asked", "reboot": "rebooted_share"}
    return {found: 0.0 for word, found in metric.items() if word in name}
