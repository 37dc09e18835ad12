"""A world that is ready to be played, and a server of it."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import pytest
from serving import Serving

from itc.play.game import game_of
from itc.play.library import Library
from itc.train.runs import load


def game_that_ends(world, bias):
    """The model's own opinion of whether an episode ends is outweighed."""
    run = load(world)
    model = run.state.world_model.model
    outer = jnp.array([0.0, bias], jnp.float32)
    model = eqx.tree_at(lambda model: model.done_head.outer.bias, model, outer)
    state = run.state._replace(world_model=run.state.world_model._replace(model=model))
    return game_of("tiny", replace(run, state=state))


@pytest.fixture(scope="session")
def game(exported_world):
    """Its model has hardly learned anything: at least it must not end episodes at random."""
    return game_that_ends(exported_world, -1e9)


@pytest.fixture(scope="session")
def ending(exported_world):
    """Imagined episodes end with their first step."""
    return game_that_ends(exported_world, 1e9)


@pytest.fixture(scope="session")
def library(exported_world, game):
    library = Library([exported_world])
    library.games["tiny"] = game
    return library


@pytest.fixture(scope="session")
def serving(library):
    served = Serving(library)
    yield served
    served.close()
