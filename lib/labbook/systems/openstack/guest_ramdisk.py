"""A guest's ramdisk, as pure functions: an archive of busybox, a script and a few kernel modules."""

import gzip
import re
from pathlib import Path

WANTED = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_scsi", "sr_mod", "isofs", "virtio_rng")
FOLDERS = ("bin", "dev", "modules", "proc", "root", "sys")


def ramdisk(init: bytes, busybox: bytes, modules: Path) -> bytes:
    """The archive, packed. `modules`: the folder of a kernel package's modules."""
    found = {_name(file): file for file in sorted(modules.rglob("*.ko"))}
    order = in_order(WANTED, {name: depends(file.read_bytes()) for name, file in found.items()})
    entries = [(folder, 0o40755, b"") for folder in FOLDERS]
    entries += [("init", 0o100755, init), ("bin/busybox", 0o100755, busybox),
                ("modules/order", 0o100644, " ".join(order).encode())]
    entries += [(f"modules/{name}.ko", 0o100644, found[name].read_bytes()) for name in order]
    return gzip.compress(archive(entries), 6, mtime=0)


def in_order(wanted, needs: dict[str, list[str]]) -> list[str]:
    """Names of modules, each after all that it needs; such as are part of the kernel are left out."""
    order = []
    for name in wanted:
        if name in needs and name not in order:
            order += [one for one in in_order(needs[name], needs) if one not in order] + [name]
    return order


def depends(module: bytes) -> list[str]:
    """What a module says that it needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return found[1].decode().replace("-", "_").split(",") if found and found[1] else []


def archive(entries) -> bytes:
    """A cpio archive (newc) of (name, mode, content)."""
    parts = [_entry(number, *entry) for number, entry in enumerate(entries, 1)]
    return b"".join((*parts, _entry(0, "TRAILER!!!", 0, b"")))


def _entry(number, name, mode, content) -> bytes:
    # inode, mode, uid, gid, links, time, size, device, that of a node, length of the name, no sum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _name(file: Path) -> str:
    return file.stem.replace("-", "_")
