"""The calls that metadata clients make on a mounted file system, and how a plan asks for one.

A plan yields (code, directory, folder, name, other): the index of a call in OPS; which of its
directories it is about; an open directory that the names are relative to, so that a path is no
longer than what the call is about: each part of it may be asked of the file system; the name; and
what else the call takes. It is sent what the call gave, None where it failed.
"""

import os
from contextlib import suppress

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PIN = "ceph.dir.pin"   # names the rank that is to have a directory and all below it


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
    """`pin`: the rank that is to have it, or None."""
    os.mkdir(name, FOLDER_MODE, dir_fd=folder)
    _pinned(folder, name, pin)
    return True


def mkdir_once(folder, name, pin):
    """The same, of a directory that several clients make."""
    with suppress(FileExistsError):
        os.mkdir(name, FOLDER_MODE, dir_fd=folder)
        _pinned(folder, name, pin)
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
    """A directory, open, and its entries, which are read as they are come to."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    return opened, os.scandir(opened)


def open_folder(_, path, __):
    """A folder that is made where it is not there, open."""
    with suppress(FileExistsError):
        os.mkdir(path, FOLDER_MODE)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _pinned(folder, name, pin):
    if pin is not None:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.setxattr(opened, PIN, str(pin).encode())
        finally:
            os.close(opened)


FUNCTIONS = (create, stat, unlink, rename, mkdir, rmdir, names_in, enter, mkdir_once, open_folder)
# what a row of each is called
OPS = ("create", "stat", "unlink", "rename", "mkdir", "rmdir", "readdir", "readdir", "mkdir",
       "mkdir")
(CREATE, STAT, UNLINK, RENAME, MKDIR, RMDIR, NAMES, ENTER, MKDIR_ONCE, OPEN) = range(len(OPS))
