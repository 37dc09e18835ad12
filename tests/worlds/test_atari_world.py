"""A world whose frames a network draws: exported, read again, and played with pictures."""

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("ale_py", reason="the extra atari is not installed")

from itc.envs.registry import make
from itc.evaluate.export import export
from itc.play.game import game_of
from itc.play.protocol import pack_frame
from itc.play.session import Session
from itc.train.agents import agent_of
from itc.train.run_folder import RunFolder
from itc.train.runs import Run, load
from train.vq_tiny import VQ_TINY


def test_from_export_to_play(tmp_path):
    env, agent = make(VQ_TINY.env), agent_of(VQ_TINY)
    RunFolder(tmp_path / "run").write_config(VQ_TINY, "atari/tiny", 0)
    state = agent.new_state(env, VQ_TINY, 0)
    state = state._replace(tokenizer=state.tokenizer._replace(idle=jnp.zeros_like(state.tokenizer.idle)))
    run = Run(tmp_path / "run", "atari/tiny", 0, VQ_TINY, env, state)
    game = game_of("pong", load(export(run, tmp_path / "pong", windows=3)))
    assert game.starts.simulator is None  # an emulator is not put into a state from a file
    session = Session(game, seed=0)
    session.show([*session.names, "real"])
    assert not session.panels[2].same_state
    for action in (2, None):
        if not session.over:  # a model that learned nothing ends episodes at random
            session.step(action)
    for panel in session.panels:
        assert panel.shown.picture.shape == env.spec.frame_shape
        assert (panel.shown.frame.tokens < game.codes).all()
    picture = int(np.prod(env.spec.frame_shape))
    sent = pack_frame(1, session.steps, [(0, session.panels[0].shown)], game.codes)
    assert len(sent) == 12 + 32 + 3 * env.spec.cells + picture
    other = Session(game, seed=1)
    other.replay(session.recording())
    assert other.recording() == session.recording()
