"""How a session ends."""

from __future__ import annotations

import inspect
import logging

import pytest
from py4j import java_gateway

from lakehouse.engines.spark.attach import _PY4J_DISCONNECTED, silent_disconnect


def test_what_java_did_not_answer_before_it_ended_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    with silent_disconnect():
        logging.error(_PY4J_DISCONNECTED)
        logging.error("Something else.")
    logging.error(_PY4J_DISCONNECTED)
    assert caplog.messages == ["Something else.", _PY4J_DISCONNECTED]


def test_py4j_still_says_it_in_these_words() -> None:
    assert _PY4J_DISCONNECTED in inspect.getsource(java_gateway.GatewayClient.send_command)
