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
    """Writes beside and renames, so that a file is there whole or not at all."""
    path = Path(path)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(model.to_bytes())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
