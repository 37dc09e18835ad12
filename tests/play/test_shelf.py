"""What is shown of a world before it is opened is what it shows once it is open."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from itc.play.film import picture_of
from itc.play.game import game_of
from itc.play.library import Library
from itc.play.panels import Dream
from itc.play.session import decoders_of
from itc.play.shelf import first_frame
from itc.train.runs import load
from itc.worlds import find, names


@pytest.mark.parametrize("name", names())
def test_the_picture_is_the_first_frame_of_play(name):
    game = game_of(name, load(find(name)))
    picture = first_frame(find(name), game.spec.name)
    if not game.drawn_by_codes:
        assert picture is None
        return
    decoder, config = next(iter(decoders_of(game).items()))
    panel = Dream(game, decoder, 0, config=config)
    np.testing.assert_array_equal(picture, picture_of(panel, panel.shown))


def test_the_shelf_has_a_picture_of_each_world_of_the_package_and_of_no_other(exported_world):
    shelf = {entry["name"]: entry for entry in Library([exported_world, find(names()[0])]).shelf}
    assert shelf.keys() == {"tiny", *names()}
    assert shelf["tiny"]["picture"] is None  # nothing of it was compared with its digests yet
    for name in ("breakout", "craftax-classic", "creatures"):
        assert "its policy returns" in shelf[name]["plays"]
        with Image.open(io.BytesIO(base64.b64decode(shelf[name]["picture"]))) as picture:
            assert min(picture.size) >= 10
