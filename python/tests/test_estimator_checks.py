"""All of scikit-learn's checks of an estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sumout import TMMClassifier, TMMDensity, TMMImputer, TMMRegressor


@parametrize_with_checks([TMMClassifier(), TMMDensity(), TMMImputer(), TMMRegressor()])
def test_scikit_learn(estimator, check):
    check(estimator)
