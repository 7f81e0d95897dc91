"""Known readers, for traces: put on a host and run there, with Python alone.

python3 -I -S disk_readers.py make FILE MIB             a file laid out in one go
python3 -I -S disk_readers.py read FILE COUNT WHO...    each thread reads COUNT times past all caches,
                                                        and the first that is done ends all; prints
                                                        bytes by thread
"""

import ctypes
import json
import mmap
import os
import random
import sys
import threading

SIZES = {"sequential": 64 << 10, "random": 4 << 10}


def make(file, mebibytes):
    chunk = mmap.mmap(-1, 1 << 20)
    chunk.write(os.urandom(1 << 20))
    made = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    os.posix_fallocate(made, 0, mebibytes << 20)
    for number in range(mebibytes):
        os.pwrite(made, chunk, number << 20)
    os.fsync(made)


def read(file, count, who):
    start, done, bytes_read = threading.Barrier(len(who)), threading.Event(), {}
    threads = [threading.Thread(target=_read, args=(file, count, one, start, done, bytes_read)) for one in who]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(bytes_read))


def _read(file, count, who, start, done, bytes_read):
    ctypes.CDLL(None).prctl(15, who.encode())       # PR_SET_NAME
    opened, size = os.open(file, os.O_RDONLY | os.O_DIRECT), SIZES[who]
    buffer, draw = mmap.mmap(-1, size), random.Random(5)
    blocks = os.fstat(opened).st_size // size
    start.wait()
    bytes_read[who] = 0
    for number in range(count):
        at = number % blocks if who == "sequential" else draw.randrange(blocks)
        bytes_read[who] += os.preadv(opened, [buffer], at * size)
        if done.is_set():
            break
    done.set()


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        read(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
