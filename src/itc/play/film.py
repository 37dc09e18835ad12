"""A recording as a moving picture: the panels side by side."""

import io
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from itc.play.panels import Panel, Shown
from itc.play.session import Session
from itc.viewer.filmstrip import as_picture

HEIGHT = 256  # pixels, about: three square panels are as wide as a README shows them
GAP = 12  # pixels between panels
CAPTION, NOTE = 24, 20  # pixels above each panel for its name, and below it for what was counted
NAME_SIZE, NOTE_SIZE = 17, 13  # of letters, in pixels
LONGEST = 1000  # steps
DARK, LIGHT = 24, (236, 232, 224)  # around the panels, and the letters there
SOFT, ALERT = (164, 160, 152), (255, 176, 64)  # what was counted, and in the step in which more was

Picture = UInt8[np.ndarray, "H W 3"]


def pictures_of(session: Session, last: int) -> Iterator[np.ndarray]:
    """The last steps, with the frame before them; drawn one by one, as a thousand take a lot of memory."""
    steps = min(last, session.steps, LONGEST)
    for at in range(session.steps - steps, session.steps + 1):
        yield side_by_side([_drawn(panel, at) for panel in session.panels])


def _drawn(panel: Panel, at: int) -> np.ndarray:
    """A panel after so many steps, with its name and what was counted so far."""
    last = len(panel.history) - 1
    before, shown = (panel.history[min(max(0, step), last)] for step in (at - 1, at))
    words = f"reward {shown.reward:g}"
    if panel.game.classifier is not None:
        words += f", duplicated {shown.counted.duplicated}, vanished {shown.counted.vanished}"
    more = any(getattr(shown.counted, what) > getattr(before.counted, what) for what in ("duplicated", "vanished"))
    return labelled(picture_of(panel, shown), panel.name, shown.ended, words, ALERT if more else SOFT)


def picture_of(panel: Panel, shown: Shown) -> Picture:
    """One frame as it is drawn on the page."""
    game = panel.game
    if shown.picture is not None:
        return as_picture(shown.picture, game.spec.frame_max)
    (h, w), (_, ph, pw, _) = game.spec.grid, game.atlas.shape
    return game.atlas[shown.frame.tokens].reshape(h, w, ph, pw, 3).swapaxes(1, 2).reshape(h * ph, w * pw, 3)


def labelled(
    picture: Picture, name: str, ended: bool, note: str = "", colour: tuple[int, int, int] = SOFT
) -> UInt8[np.ndarray, "height width 3"]:
    """Enlarged, its name above and a note below; darker after its end."""
    from PIL import Image, ImageDraw, ImageFont

    scale = max(1, round(HEIGHT / picture.shape[0]))
    large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    height, width, _ = large.shape
    canvas = np.full((CAPTION + height + (NOTE if note else 0), width, 3), DARK, np.uint8)
    canvas[CAPTION : CAPTION + height] = large // 2 if ended else large
    image = Image.fromarray(canvas)
    draw = ImageDraw.Draw(image)
    words = f"{name}{' (ended)' if ended else ''}".encode("ascii", "replace").decode()
    draw.text((2, 1), words, fill=LIGHT, font=ImageFont.load_default(NAME_SIZE))
    draw.text((2, CAPTION + height + 2), note, fill=colour, font=ImageFont.load_default(NOTE_SIZE))
    return np.asarray(image)


def side_by_side(pictures: Sequence[np.ndarray]) -> Picture:
    gap = np.full((pictures[0].shape[0], GAP, 3), DARK, np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, gap)][:-1], axis=1)


def gif(pictures: Iterable[np.ndarray], per_second: float) -> bytes:
    """An animation that repeats."""
    from PIL import Image

    images, file = (Image.fromarray(picture) for picture in pictures), io.BytesIO()
    duration = round(1000 / per_second)
    next(images).save(file, format="GIF", save_all=True, append_images=images, duration=duration, loop=0)
    return file.getvalue()


def film_of(session: Session, last: int) -> bytes:
    """The last steps as an animated GIF."""
    return gif(pictures_of(session, last), per_second(session))


def per_second(session: Session) -> float:
    """Steps, as fast as the game itself goes if it has a clock."""
    return session.game.clock or 6.0


def encoder_of(path: Path) -> str | None:
    """The program that writes a film of this name, None if we do; raises if nobody can."""
    if path.suffix == ".gif":
        return None
    ffmpeg = shutil.which("ffmpeg")
    if path.suffix != ".mp4" or ffmpeg is None:
        wanted = "ffmpeg, which is not installed" if path.suffix == ".mp4" else "a name that ends in .gif or .mp4"
        raise ValueError(f"writing {path} needs {wanted}")
    return ffmpeg


def write_film(session: Session, last: int, path: Path) -> None:
    """As a GIF, or as an MP4 where ffmpeg is installed."""
    ffmpeg = encoder_of(path)
    if ffmpeg is None:
        path.write_bytes(film_of(session, last))
        return
    pictures = pictures_of(session, last)
    first = next(pictures)
    height, width, _ = first.shape
    command = [
        ffmpeg, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r",
        str(per_second(session)), "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", str(path),
    ]  # fmt: skip
    with suppress(BrokenPipeError), subprocess.Popen(command, stdin=subprocess.PIPE) as encoder:
        assert encoder.stdin is not None
        for picture in chain([first], pictures):
            encoder.stdin.write(picture.tobytes())
    if encoder.returncode:
        raise ValueError(f"ffmpeg could not write {path}")
