"""Requests refuse options that are not valid."""

from __future__ import annotations

from typing import Any, cast

import pytest

from lakehouse.core.errors import UnknownChoiceError
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest


@pytest.mark.parametrize("option", [{"mode": "merge"}, {"contract": "loose"}, {"format": "delta"}], ids=str)
def test_a_choice_that_is_not_on_the_list_is_refused(option: dict[str, str]) -> None:
    with pytest.raises(UnknownChoiceError, match=next(iter(option.values()))) as caught:
        IngestRequest(("leads.csv",), TableName("crm", "leads"), **cast(Any, option))
    assert "Choose one of: " in caught.value.hint
