"""The reader that docs/model-file.md shows computes what the package computes."""

import json

import guide
import numpy as np
import pytest

from sumout import TMMClassifier, TMMDensity


def dependent(rows=400):
    """Numbers that follow from each other, in two classes with other signs."""
    random = np.random.RandomState(0)
    labels = np.arange(rows) % 2
    x = random.normal(size=rows)
    noise = 0.1 * random.normal(size=(rows, 2))
    columns = [x, np.where(labels, -x, x) + noise[:, 0], x + noise[:, 1], random.normal(size=rows)]
    return np.column_stack(columns), labels


def independent(rows=400):
    """A number and a category."""
    random = np.random.RandomState(0)
    labels = np.arange(rows) % 2
    return np.column_stack(
        [random.normal(size=rows) + labels, random.randint(3, size=rows)]
    ), labels


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """What the code of the page defines; its example opens the file model.sumout."""
    pytest.importorskip("safetensors")
    monkeypatch.chdir(tmp_path)

    def names(model):
        model.save("model.sumout")
        defined = {}
        for code, _ in guide.blocks("model-file.md"):
            exec(compile(code, "model-file.md", "exec"), defined)
        return defined

    return names


def has_factors(model):
    return "clusters_with_factors" in json.loads(model.model_.about)["training"]


@pytest.mark.parametrize("kind", [TMMClassifier, TMMDensity])
@pytest.mark.parametrize("table", [dependent, independent])
def test_the_reader_of_the_page(reader, kind, table):
    X, y = table()
    categories = [1] if table is independent else None
    model = kind(steps=40, random_state=0, categorical_features=categories).fit(X, y)
    assert has_factors(model) == (table is dependent)
    names = reader(model)
    rows = np.where(np.random.RandomState(1).uniform(size=X[:20].shape) < 0.3, np.nan, X[:20])
    read = np.array([names["log_likelihood"]("model.sumout", row) for row in rows])
    if kind is TMMDensity:
        np.testing.assert_allclose(read[:, 0], model.score_samples(rows), rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_allclose(read, model.log_likelihood(rows), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(names["prior"], [0.5, 0.5])
        np.testing.assert_allclose(names["top_weights"].sum(1), 1)
