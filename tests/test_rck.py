"""`make test-rck` passes only if exactly the tests fail that the catalog refuses by design."""

from __future__ import annotations

from tools.rck.own_catalog import REFUSED, unexpected


def _line(test: str, state: str, reason: str = "") -> str:
    kit, _, name = test.partition(".")
    return "\t".join([kit, name, state, "0.1", reason])


def _refused(test: str) -> str:
    return _line(test, "fail", f"BadRequestException: Malformed request: The property {REFUSED[test]} must be false.")


AS_DESIGNED = [_refused(test) for test in REFUSED] + [_line("views.testLoad", "ok"), _line("tables.testSkip", "skip")]


def test_the_refusals_by_design_are_expected() -> None:
    assert len(REFUSED) == 5
    assert unexpected(AS_DESIGNED, REFUSED) == []


def test_any_other_failure_is_reported() -> None:
    assert len(unexpected([*AS_DESIGNED, _line("views.testDrop", "fail", "it broke")], REFUSED)) == 1


def test_a_refused_test_that_fails_for_another_reason_is_reported() -> None:
    test = next(iter(REFUSED))
    assert len(unexpected([_line(test, "fail", "ServiceFailureException"), *AS_DESIGNED[1:]], REFUSED)) == 1


def test_a_refused_test_that_passes_is_reported() -> None:
    assert len(unexpected([_line(next(iter(REFUSED)), "ok"), *AS_DESIGNED[1:]], REFUSED)) == 1


def test_nothing_may_fail_where_deletion_is_allowed() -> None:
    assert len(unexpected(AS_DESIGNED, {})) == 5
