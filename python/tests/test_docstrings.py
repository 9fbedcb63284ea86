"""`help` shows every parameter, attribute and public method, and its examples run."""

import doctest
import inspect
import re

import pandas as pd
import pytest

import sumout
from sumout import TMMClassifier, TMMDensity, TMMImputer, TMMRegressor

ESTIMATORS = [TMMClassifier, TMMDensity, TMMImputer, TMMRegressor]


def entries(text, section):
    """Names in a section of a numpydoc docstring, in order."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.M | re.S)
    assert found, f"expected a section {section}"
    heads = re.findall(r"^(\w[^:\n]*?)(?: : .*)?$", found[1], re.M)
    return [name for head in heads for name in head.split(", ")]


def public_methods(estimator):
    """Those that are defined in this package."""
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("sumout."):
            yield name, method


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_classes(estimator):
    text = inspect.getdoc(estimator)
    documented = entries(text, "Parameters")
    assert sorted(documented) == sorted(inspect.signature(estimator).parameters)
    assert "model_" in entries(text, "Attributes")
    assert {name for name, _ in public_methods(estimator)} <= set(entries(text, "Methods"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attributes(estimator):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 1.0, 4.0, 3.0]})
    fitted = estimator(steps=2).fit(frame, [0, 1, 0, 1])
    learned = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert learned == set(entries(inspect.getdoc(estimator), "Attributes"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_methods(estimator):
    for name, method in public_methods(estimator):
        parameters = [p for p in inspect.signature(method).parameters if p != "self"]
        text = inspect.getdoc(method)
        documented = entries(text, "Parameters") if parameters else []
        assert documented == parameters, name
        assert "Returns\n-------" in text or name == "save", name


@pytest.mark.parametrize("named", ESTIMATORS + [sumout])
def test_examples(named):
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner()
    for test in finder.find(named, named.__name__):
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0
