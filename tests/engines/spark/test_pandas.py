"""PySpark's conversion from and to pandas imports Python's distutils, which warns where setuptools has not replaced it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("distutils", ["stdlib", "local"])
def test_the_tests_may_use_pandas_whichever_distutils_a_process_has(
    pytestconfig: pytest.Config, distutils: str
) -> None:
    filters = [part for line in pytestconfig.getini("filterwarnings") for part in ("-W", line)]
    script = "from pyspark.sql.pandas.utils import require_minimum_pandas_version as check; check()"
    done = subprocess.run(
        [sys.executable, *filters, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "SETUPTOOLS_USE_DISTUTILS": distutils},
    )
    assert (done.returncode, done.stderr) == (0, "")
