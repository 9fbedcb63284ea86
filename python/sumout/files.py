"""Model files, the same that the command line reads and writes."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sumout._engine import Model


def load(path: str | os.PathLike) -> Any:
    """Opens a `.sumout` file: a TMMClassifier, or a TMMDensity where the model has one class without a name."""
    from sumout.classifier import TMMClassifier
    from sumout.density import TMMDensity

    try:
        model = Model.from_bytes(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None
    unnamed = not json.loads(model.about)["classes"]
    kind = TMMDensity if model.classes == 1 and unnamed else TMMClassifier
    return kind()._open(model)


def save(model: Model, path: str | os.PathLike) -> None:
    """Writes beside and renames, so that a file is there whole or not at all. A device or a pipe is written to, and a
    link stays one; a file that was there keeps its mode."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:  # a folder says here that it is one
            file.write(model.to_bytes())
        return
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(model.to_bytes())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
