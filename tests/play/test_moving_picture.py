"""The moving picture of the README is of the recording beside it, in a world that is shipped."""

from pathlib import Path

from PIL import Image

from itc.play.recording import read_recording
from itc.train.world_folder import read_notes
from itc.worlds import find

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_moving_picture_is_of_the_recording():
    recording = read_recording(DOCS / "play.json")
    assert read_notes(find(recording.world)).identity == recording.identity
    assert (DOCS / "play.gif").stat().st_size <= 2e6
    with Image.open(DOCS / "play.gif") as film:
        assert film.n_frames <= len(recording.actions) + 1
        assert film.width <= 800
