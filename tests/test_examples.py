"""The examples of a world model with an imagination loop, as people would run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["torch_world_model", "jax_world_model"])
def test_a_world_model_imagines(name):
    finished = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    said = {line.split(":")[0]: [int(x) for x in re.findall(r"(\d+)%", line)] for line in finished.stdout.splitlines()}
    assert said["sample"][0] < 80
    assert said["conserving"][0] >= 98
    assert min(moved for _, moved in said.values()) > 30, "the world is frozen"
