"""Commands that compute little compile fast, unless the user says otherwise."""

import os

import pytest

from itc.cli.compilation import FAST_TO_COMPILE, compile_fast


@pytest.mark.parametrize(("before", "after"), [(None, " ".join(FAST_TO_COMPILE)), ("", ""), ("--mine", "--mine")])
def test_flags_of_the_user_stay(monkeypatch, before, after):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_FLAGS", before)
    compile_fast()
    assert os.environ["XLA_FLAGS"] == after
