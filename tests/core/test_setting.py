"""The settings of a plugin's own are read into its dataclass, and checked as ours are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lakehouse.core.errors import BadSettingError, UnknownChoiceError
from lakehouse.core.setting import read_options, setting


@dataclass(frozen=True)
class Options:
    wait_s: float = setting(5.0, "Seconds to wait.")
    pretty: bool = setting(False, "Indent.")
    mode: str = setting("fast", "How.", choices=("fast", "safe"))
    token: str = setting("", "Key.", secret=True)


def read(**given: str) -> Options:
    return read_options(Options, given, "catalog.properties")


def test_values_have_the_types_of_their_fields_and_the_others_their_defaults() -> None:
    assert read(wait_s="0.5", pretty="yes") == Options(0.5, True)
    assert read() == Options()


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(BadSettingError, match=r"catalog\.properties\.wait is not a setting") as refused:
        read(wait="1")
    assert "Did you mean wait_s?" in refused.value.hint
    assert "mode, pretty, token, wait_s" in refused.value.hint


def test_a_value_of_another_type_or_choice_is_refused() -> None:
    with pytest.raises(BadSettingError, match=r"wait_s = 'soon' .* is not a number"):
        read(wait_s="soon")
    with pytest.raises(UnknownChoiceError) as refused:
        read(mode="slow")
    assert refused.value.known == ["fast", "safe"]
