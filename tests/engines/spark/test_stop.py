"""How a session ends."""

from __future__ import annotations

import inspect
import logging

import pytest
from py4j import java_gateway

from lakehouse.engines.spark.session import _CUT_OFF, _unheard


def test_what_java_did_not_answer_before_it_ended_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    with _unheard(_CUT_OFF):
        logging.error(_CUT_OFF)
        logging.error("Something else.")
    logging.error(_CUT_OFF)
    assert caplog.messages == ["Something else.", _CUT_OFF]


def test_py4j_still_says_it_in_these_words() -> None:
    assert _CUT_OFF in inspect.getsource(java_gateway.GatewayClient.send_command)
