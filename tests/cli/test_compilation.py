"""Where compiled programs are kept, and what is said of it; commands that compute little compile fast."""

import os

import jax
import pytest

from itc.cli.compilation import FAST_TO_COMPILE, compile_fast, keep_compiled

NAMES = ("jax_compilation_cache_dir", "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """JAX as it comes, with a home for caches; afterwards as it was."""
    before = {name: jax.config.values[name] for name in NAMES}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "caches"
    for name, value in before.items():
        jax.config.update(name, value)


def test_they_are_kept_in_a_folder_of_the_users(fresh):
    folder = fresh / "itc" / "jax"
    assert (
        keep_compiled() == f"compiled programs are kept in {folder}; JAX_ENABLE_COMPILATION_CACHE=false turns that off"
    )
    assert jax.config.values["jax_compilation_cache_dir"] == str(folder)
    assert folder.is_dir()


def test_they_are_kept_where_jax_was_told_to(fresh, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "told"))
    assert keep_compiled().startswith(f"compiled programs are kept in {tmp_path / 'told'};")
    assert not fresh.exists()


def test_they_are_not_kept_if_that_is_switched_off(fresh):
    jax.config.update("jax_enable_compilation_cache", False)
    assert keep_compiled() == "compiled programs are not kept: JAX_ENABLE_COMPILATION_CACHE is off"
    assert not fresh.exists()


def test_a_folder_that_cannot_be_made_is_named_and_does_no_harm(fresh):
    fresh.write_text("a file, where a folder should be")
    assert f"{fresh}/itc/jax cannot be made (" in keep_compiled()
    assert jax.config.values["jax_compilation_cache_dir"] is None


@pytest.mark.parametrize(("before", "after"), [(None, " ".join(FAST_TO_COMPILE)), ("", ""), ("--mine", "--mine")])
def test_flags_of_the_user_stay(monkeypatch, before, after):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_FLAGS", before)
    compile_fast()
    assert os.environ["XLA_FLAGS"] == after
