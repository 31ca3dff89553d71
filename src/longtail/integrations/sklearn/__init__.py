"""scikit-learn: logit adjustment around any classifier. Needs `pip install longtail[sklearn]`."""

from importlib.util import find_spec

if find_spec("sklearn") is None:  # scikit-learn itself, not this folder
    raise ImportError(
        "longtail.integrations.sklearn needs scikit-learn, which is not installed; "
        "get it with: pip install longtail[sklearn]"
    )

from longtail.integrations.sklearn.classifier import (
    LogitAdjustedClassifier as LogitAdjustedClassifier,
)
