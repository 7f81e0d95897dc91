"""The SHA-256 of a folder's files: `python - FOLDER COMPLETE`, where the file COMPLETE lists them."""

import hashlib
import json
import os
import sys


def digest(folder, complete: str) -> str:
    """Over the names and the contents of all files that `complete`, JSON below the folder, has as keys.
    OSError when one is not there."""
    whole = hashlib.sha256()
    with open(os.path.join(folder, complete)) as listed:
        names = sorted(json.load(listed))
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            whole.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode())
    return whole.hexdigest()


if __name__ == "__main__":
    print(digest(*sys.argv[1:]))
