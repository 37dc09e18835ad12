"""A world that is ready to be played, and a server of it."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import pytest

from itc.play.door import Door
from itc.play.game import game_of
from itc.play.library import Library
from itc.play.server import PlayServer
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


class Serving:
    """A server in a thread of its own."""

    def __init__(self, library, host="127.0.0.1", **options):
        self.door = Door(host, 0)
        self.server = PlayServer(library, self.door, **options)
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.ready.wait(30)

    def _run(self):
        self.task = self.loop.create_task(self.server.run(lambda server: self.ready.set()))
        with suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self.task)
        self.loop.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(30)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.door.port}"


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
