"""A file system that hangs: `python3 mute_fs.py FOLDER [self]`, as root.

It mounts itself there, describes its root directory, and never answers anything else; with `self` it
also waits for an answer of its own, so that even SIGKILL does not end it.
"""

import ctypes
import errno
import os
import struct
import sys
import threading

GETATTR, INIT, STATX = 3, 26, 52
NOSUID_NODEV = 6
DIRECTORY = 0o40755


def mount(device: int, path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    data = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"mute", path.encode(), b"fuse.mute", ctypes.c_ulong(NOSUID_NODEV), data):
        raise OSError(ctypes.get_errno(), f"mount on {path}")


def answer(op: int, node: int) -> tuple[int, bytes] | None:
    """(error, body) of the kernel's FUSE protocol; None for none."""
    if op == INIT:
        return 0, struct.pack("<IIIIHHI", 7, 31, 65536, 0, 12, 10, 4096).ljust(64, b"\0")
    if op == STATX:
        return -errno.ENOSYS, b""   # then it asks as it always did
    if op == GETATTR and node == 1:
        times = (0,) * 9
        return 0, bytes(16) + struct.pack("<3Q3Q3I7I", 1, 0, 0, *times, DIRECTORY, 2, 0, 0, 0, 4096, 0)
    return None


def serve(device: int) -> None:
    while True:
        request = os.read(device, 1 << 17)
        _, op, unique, node = struct.unpack_from("<IIQQ", request)
        found = answer(op, node)
        if found is not None:
            error, body = found
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        print(f"asked {op}", flush=True)


def main(path, *itself):
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(device, path)
    if itself:
        threading.Thread(target=os.stat, args=(f"{path}/mine",), daemon=True).start()
    serve(device)


if __name__ == "__main__":
    main(*sys.argv[1:])
