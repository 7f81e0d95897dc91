"""The system calls that metadata clients make on a mounted file system, and how a plan asks for one.

A plan yields (code, directory, folder, name, other): the index of a call in OPS; the number of the
directory; an open folder that the name is relative to (so that paths are short: the file system may
look each part up); the name; and a further argument. It is sent the call's result, None when it
failed.
"""

import os
from contextlib import suppress

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PIN = "ceph.dir.pin"   # the rank that is to serve a directory and all below it


def create(folder, name, _):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE, dir_fd=folder))
    return True


def stat(folder, name, _):
    os.stat(name, dir_fd=folder)
    return True


def unlink(folder, name, _):
    os.unlink(name, dir_fd=folder)
    return True


def rename(folder, name, other):
    os.rename(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def mkdir(folder, name, pin):
    """`pin`: the rank that is to serve it, or None."""
    os.mkdir(name, FOLDER_MODE, dir_fd=folder)
    _pin(folder, name, pin)
    return True


def mkdir_once(folder, name, pin):
    """The same, of a directory that several clients try to make."""
    with suppress(FileExistsError):
        os.mkdir(name, FOLDER_MODE, dir_fd=folder)
        _pin(folder, name, pin)
    return True


def rmdir(folder, name, _):
    os.rmdir(name, dir_fd=folder)
    return True


def names_in(folder, name, _):
    """The names in a directory."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)


def enter(folder, name, _):
    """A directory, open, and an iterator over its entries, which reads as it goes."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    return opened, os.scandir(opened)


def open_folder(_, path, __):
    """A folder, open; made if it does not exist."""
    with suppress(FileExistsError):
        os.mkdir(path, FOLDER_MODE)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _pin(folder, name, pin):
    if pin is not None:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.setxattr(opened, PIN, str(pin).encode())
        finally:
            os.close(opened)


FUNCTIONS = (create, stat, unlink, rename, mkdir, rmdir, names_in, enter, mkdir_once, open_folder)
# The name of each in rows.
OPS = ("create", "stat", "unlink", "rename", "mkdir", "rmdir", "readdir", "readdir", "mkdir",
       "mkdir")
(CREATE, STAT, UNLINK, RENAME, MKDIR, RMDIR, NAMES, ENTER, MKDIR_ONCE, OPEN) = range(len(OPS))
