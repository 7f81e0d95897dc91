"""Make a lab host's own disk, modelled or not: a sparse file, a loop device, ext4.

Runs as root, with the standard library alone.
"""

from pathlib import Path

from labbook.lab.disk import loop_device, modelled

QUEUE = "queue"     # in a journal: a disk's `file`, and `was`, the loop device's settings before ours


def below_loop(file: Path, disk: dict) -> Path:
    """The file that the loop device of a disk is on."""
    return modelled.served_file(file) if "model" in disk else file


def make(file: Path, disk: dict, journal, program: Path | None, beside: Path, owner: int) -> str:
    """The path of a new loop device with ext4, tuned as `disk` (of lab.yml, size in bytes) says.

    `program`: of the daemon, if the disk is modelled; `beside` and `owner`: see modelled.serve. The
    loop device itself is in the caller's journal already, under below_loop(file, disk).
    """
    if "model" not in disk:
        device = loop_device.make(file, disk["size"])
    else:
        loop_device.make_file(file, disk["size"])
        # a discard of the whole disk would take long, and it is empty
        device = loop_device.attach(modelled.serve(program, file, disk, beside, owner, journal), "nodiscard")
    journal.write(QUEUE, file=str(below_loop(file, disk)), was=loop_device.queue(device))
    loop_device.tune(device, {"read_ahead_kb": loop_device.READ_AHEAD_KB, **disk, **_turns(disk)})
    return device


def _turns(disk) -> dict:
    """What the kernel assumes of a modelled disk: whether it turns."""
    return {"rotational": int("rpm" in disk["figures"] and disk["figures"]["rpm"] > 0)} if "model" in disk else {}
