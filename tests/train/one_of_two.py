"""One of two processes that do what a run does together, without training: `one_of_two.py PORT NUMBER KILLED FOLDER`.

Process 0 saves a state that is divided among both; then KILLED kills itself. What else was wrong is on standard error.
"""

import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np
from jax import random
from tiny import TINY

from itc.cli.several import Where, together
from itc.envs.registry import make
from itc.train import checkpoint, processes
from itc.train.loop import _save
from itc.train.mesh import mesh_for
from itc.train.patch_agent.state import shape_of_state
from itc.train.placing import from_first, gather, place
from itc.train.state import digest


def filled(shapes):
    """A state of these shapes, with numbers that are not all the same."""

    def array(shape):
        if jax.dtypes.issubdtype(shape.dtype, jax.dtypes.prng_key):
            return random.split(random.key(3), shape.shape) if shape.shape else random.key(3)
        return np.arange(shape.size).reshape(shape.shape).astype(shape.dtype)

    return jax.tree.map(array, shapes)


def main(port, number, killed, folder):
    with together(Where(f"127.0.0.1:{port}", 2, number)):
        assert processes.all_of(number) == [0, 1]
        assert processes.agreed(number == 1)
        assert not processes.agreed(False)
        assert processes.from_first({"number": number}) == {"number": 0}
        env = make(TINY.env)
        shapes, mesh = shape_of_state(env, TINY), mesh_for(env, TINY, None)
        assert mesh.size == 2
        whole = filled(shapes)
        state = place(mesh, from_first(mesh, whole if number == 0 else shapes))
        steps = state.buffer.steps["frame"]
        assert steps.addressable_data(0).shape[0] == TINY.collect.num_envs // 2
        assert digest(gather(mesh, state)) == digest(whole)
        saved = _save(folder, "000001-0000", state, mesh)
        assert checkpoint.read_notes(saved.path)["digest"] == digest(whole)
        if number == 0:
            assert digest(checkpoint.read(saved.path, shapes).state) == digest(whole)
        processes.wait()
        if number == killed:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            gather(mesh, state)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
