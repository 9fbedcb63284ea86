"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | os.PathLike, data: bytes) -> None:
    """Writes a temporary file in the same folder, then renames it to `path`.

    A device or a pipe is written to directly. A symbolic link stays a link, and a file that
    is replaced keeps its mode.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)  # raises IsADirectoryError for a folder
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on the disk before it gets its name
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_names(path.parent)


def sync_names(folder: Path) -> None:
    """Writes the names of a folder to the disk, so that a power cut does not undo a renaming."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def umask() -> int:
    """The process's mask for new files; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
