"""The extra: nothing of scikit-learn is imported before it is asked for, and its lack is told."""

import subprocess
import sys


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_without_scikit_learn_the_error_names_what_to_install():
    answer = run(
        "import sys; sys.modules['sklearn'] = None; import longtail as lt; "
        "lt.integrations; lt.integrations.sklearn"
    )
    assert "ImportError" in answer.stderr
    assert "pip install longtail[sklearn]" in answer.stderr


def test_scikit_learn_is_imported_when_the_folder_is_used():
    answer = run(
        "import sys, longtail as lt; lt.integrations; before = 'sklearn' in sys.modules; "
        "lt.integrations.sklearn.LogitAdjustedClassifier; "
        "sys.exit(before or 'sklearn' not in sys.modules)"
    )
    assert answer.returncode == 0, answer.stderr


def test_an_unknown_integration_is_an_attribute_error():
    answer = run("import longtail as lt; lt.integrations.xgboost")
    assert "has no attribute 'xgboost'" in answer.stderr
