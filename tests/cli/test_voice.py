"""What commands say while they work, and what they must not say."""

import io
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import monitoring
from rich.progress import Progress

from commands import run
from itc.cli import compiling, voice
from itc.cli.compiling import PROGRAMS, announced
from itc.cli.console import PlainConsole
from itc.cli.voice import Voice
from itc.cli.watch import Screen
from itc.train import collect, patch_agent, vq_agent
from itc.train.run_folder import RunFolder
from train.tiny import TINY, words_of
from train.vq_tiny import VQ_TINY

UNANNOUNCED = {"update_episode_stats", "_burned_in", "world_model_update"}  # small, or part of another program


@pytest.fixture
def console():
    return PlainConsole(file=io.StringIO())


def said(console):
    return console.file.getvalue()


@pytest.mark.parametrize(("returns", "words"), [
    ({"return": 3.456, "return_50k": 1.09, "running_return": 0.5}, "96 interactions · return 3.46 · 5 codes"),
    ({"return_50k": 1.09, "running_return": 0.5}, "96 interactions · no episode ended, running return 0.50 · 5 codes"),
    ({"return_50k": 1.09, "running_return": 0.5, "seconds": {}}, "96 interactions · no play · 5 codes"),
])  # fmt: skip
def test_an_iteration_shows_its_own_return(console, tmp_path, returns, words):
    screen = Screen(console, Progress(console=console, disable=True), TINY, RunFolder(tmp_path), 0, None)
    screen.on_iteration({"iteration": 2, "interactions": 96, "codes": 5, "seconds": {"play": 1.0}, **returns})
    assert words in said(console)


def test_returns_of_atari_say_what_they_are_of(console, tmp_path):
    """In training an episode is one life and a reward its sign; evaluation plays the game as it is."""
    screen = Screen(console, Progress(console=console, disable=True), VQ_TINY, RunFolder(tmp_path), 0, None)
    line = {"iteration": 2, "interactions": 96, "return": 0.25, "evaluation/return": 7.0, "seconds": {"play": 1.0}}
    screen.on_iteration(line | {"imagination/reward": 0.5, "imagination/intrinsic_reward": 0.4})
    assert "return 0.25 of one life, rewards as signs · imagined reward 0.500 · of it intrinsic 0.400" in said(console)
    assert "return in evaluation 7.00" in said(console)


def test_a_voice_is_never_silent_for_long(console, monkeypatch):
    monkeypatch.setattr(voice, "QUIET", 0.3)
    with Voice(console, "thinking").speaking():
        time.sleep(1.0)
    assert said(console).count("thinking · ") >= 2
    live = PlainConsole(file=io.StringIO())
    with Voice(live, "thinking", live=True).speaking():
        time.sleep(0.6)
    assert said(live) == ""


def test_what_is_compiled_is_announced_and_what_was_compiled_is_not(monkeypatch):
    monkeypatch.setattr(compiling, "MOMENT", 0.0)
    begun, ended = [], []
    new = time.time() % 1000  # a constant that no program in the cache has

    def play_updates(x):
        return jnp.sin(x) @ jnp.cos(x) + new

    def of_no_importance(x):
        return x + 1

    program = jax.jit(play_updates)
    with announced(begun.append, ended.append):
        program(jnp.ones((3, 3)))
        jax.jit(of_no_importance)(jnp.ones(3))
        time.sleep(0.2)  # for the timer's thread
        assert begun == ["compiling the policy update (first time only) …"]
        program(jnp.ones((3, 3)))
        program(jnp.ones((4, 4)))
        time.sleep(0.2)
    assert begun[1:] == ["compiling the policy update again, for other shapes …"]
    assert [words.startswith("compiled the policy update in ") for words in ended] == [True, True]
    program(jnp.ones((5, 5)))
    time.sleep(0.2)
    assert len(begun) == len(ended) == 2  # nobody listens any more


def test_a_short_compilation_is_not_announced():
    heard = []

    def rollout(x):
        return x * 2

    with announced(heard.append, heard.append):
        jax.jit(rollout)(jnp.ones(7))
        time.sleep(compiling.MOMENT + 0.2)
    assert heard == []


def test_a_program_from_the_cache_is_not_announced_as_compiled(monkeypatch):
    monkeypatch.setattr(compiling, "MOMENT", 0.1)
    heard = []
    with announced(heard.append, heard.append):  # as JAX reports them
        monitoring.record_scalar(compiling.EVENT, 0.0, fun_name="jit(rollout)")
        monitoring.record_event(compiling.FOUND)
        monitoring.record_event_duration_secs("/jax/compilation_cache/cache_retrieval_time_sec", 3.0)
        time.sleep(0.3)
        monitoring.record_event_duration_secs(compiling.EVENT, 3.0, fun_name="jit(rollout)")
    assert heard == []


def test_a_program_found_in_the_cache_late_is_said_to_be_loaded(monkeypatch):
    monkeypatch.setattr(compiling, "MOMENT", 0.1)
    heard = []
    with announced(heard.append, heard.append):
        monitoring.record_scalar(compiling.EVENT, 0.0, fun_name="jit(rollout)")
        time.sleep(0.3)
        monitoring.record_event(compiling.FOUND)
        monitoring.record_event_duration_secs(compiling.EVENT, 3.0, fun_name="jit(rollout)")
    assert heard == [
        "compiling play in the environments (first time only) …",
        "loaded play in the environments in 3 s",
    ]


def test_the_announced_programs_are_those_of_the_agents():
    modules = (collect, patch_agent.phases, vq_agent.phases)
    compiled = [value for module in modules for value in vars(module).values() if hasattr(value, "_cache_size")]
    assert set(PROGRAMS) == {function.__name__ for function in compiled} - UNANNOUNCED


def test_training_announces_its_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "MOMENT", 0.0)
    config = replace(TINY, interactions=48, tokenizer=replace(TINY.tokenizer, updates=3))  # of no other test
    finished = run("train", *words_of(config), "--run", str(tmp_path / "run"))
    assert finished.returncode == 0, finished.stderr
    for name in ("the policy update", "the world model update"):
        assert f"compiling {name} (first time only) …" in finished.stdout
        assert re.search(f"(compiled|loaded) {name} in ", finished.stdout)


SLOW_TO_FOLD = """
import sys
from itc.cli import main
sys.argv = ["itc", "--version"]
main()
import jax, jax.numpy as jnp
def slow(x):
    constant = jnp.ones((110, 110)) * jnp.arange(110.0)
    return jax.lax.reduce_window(constant, 0.0, jax.lax.add, (15, 15), (1, 1), "VALID").sum() + x
print(jax.jit(slow)(1.0))
"""


def test_the_compilers_alarms_are_not_shown_unless_asked_for():
    """With a step of the compiler that takes more than the second after which it raises one."""
    unset = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    unset["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    quiet, loud = (
        subprocess.run([sys.executable, "-c", SLOW_TO_FOLD], capture_output=True, text=True, timeout=300, env=env)
        for env in (unset, unset | {"TF_CPP_MIN_LOG_LEVEL": "1"})
    )
    assert quiet.returncode == loud.returncode == 0
    assert quiet.stderr == ""
    assert "slow_operation_alarm" in loud.stderr
