"""Check files of keys and known hosts on this machine before any connection is tried."""

import base64
import binascii
import struct
from pathlib import Path

from labbook.errors import InputError

MAGIC = b"openssh-key-v1\0"


def check_files(place, file, at) -> None:
    """InputError when the key or the known hosts of a Jump or RealHost cannot be used.

    `at(name, what)` returns the key under which `file` names them.
    """
    problem = key_problem(Path(place.key))
    if problem:
        complaint, allowed = problem
        raise InputError(f"{place.key}: {complaint}", file=file, key=at(place.name, "key"),
                         allowed=allowed)
    known = Path(place.known_hosts)
    if not known.is_file():
        raise InputError(f"{known}: no such file", file=file, key=at(place.name, "known_hosts"),
                         allowed=f"a file with the hosts' keys; ssh-keyscan -p {place.port} "
                                 f"{place.address} prints one to compare and to add")


def key_problem(path: Path) -> tuple[str, str] | None:
    """(problem, what is allowed) of a private key's file; None when it can be used."""
    wanted = "a private key without a passphrase, mode 0600"
    try:
        mode, text = path.stat().st_mode & 0o777, path.read_text()
    except FileNotFoundError:
        return "no such file", f"{wanted}; ssh-keygen -t ed25519 -f {path} makes one"
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'not text'})", wanted
    if mode & 0o077:
        return f"others may read it (mode {mode:04o})", f"mode 0600: chmod 600 {path}"
    if "PRIVATE KEY-----" not in text:
        public = text.startswith(("ssh-", "ecdsa-", "sk-"))
        return ("a public key" if public else "not a private key"), wanted
    if _encrypted(text):
        return "has a passphrase, and none is asked for", (
            f"{wanted}: a key for labs alone, ssh-keygen -t ed25519 -N '' -f ~/.ssh/labbook")
    return None


def _encrypted(text: str) -> bool:
    """By the word in a PEM file, or by the cipher in OpenSSH's format (its PROTOCOL.key)."""
    if "ENCRYPTED" in text:
        return True
    body = "".join(line for line in text.splitlines() if "-----" not in line)
    try:
        raw = base64.b64decode(body)
        if not raw.startswith(MAGIC):
            return False
        length, = struct.unpack_from(">I", raw, len(MAGIC))
        return raw[len(MAGIC) + 4:][:length] != b"none"
    except (binascii.Error, struct.error):
        return False
