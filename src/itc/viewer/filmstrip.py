"""Real frames above imagined ones: one row for the simulator, one for each decoder."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8


def draw_filmstrip(
    rows: dict[str, UInt8[np.ndarray, "t H W c"]],
    wrong: dict[str, Bool[np.ndarray, " t"]],
    frame_max: int,
    path: Path,
    title: str,
) -> None:
    """A grid of frames, time from left to right; wrong frames have a red border."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps = max(map(len, rows.values()))
    figure, axes = plt.subplots(len(rows), steps, figsize=(0.9 * steps + 1.1, 1.02 * len(rows) + 0.5), squeeze=False)
    for row, (name, frames) in enumerate(rows.items()):
        for step, frame in enumerate(frames):
            axis = axes[row, step]
            axis.imshow(as_picture(frame, frame_max), interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            differs = name in wrong and wrong[name][step]
            for side in axis.spines.values():
                side.set_color("#d9480f" if differs else "#bbb")
                side.set_linewidth(1.6 if differs else 0.6)
            if row == 0:
                axis.set_title(f"{step}", fontsize=8, color="#666", pad=3)
        axes[row, 0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9, labelpad=6)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    figure.subplots_adjust(left=1.05 / figure.get_figwidth(), right=0.995, top=1 - 0.55 / figure.get_figheight(),
                           bottom=0.02, wspace=0.06, hspace=0.06)  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


def as_picture(frame: UInt8[np.ndarray, "H W c"], frame_max: int) -> UInt8[np.ndarray, "H W 3"]:
    """RGB frames as they are; of other frames, each channel in its own colour."""
    if frame.shape[-1] == 3 and frame_max == 255:
        return frame
    import matplotlib

    colours = matplotlib.colormaps["tab10"](np.arange(frame.shape[-1]))[:, :3]
    picture = np.zeros((*frame.shape[:2], 3))
    for channel in range(frame.shape[-1]):
        picture = np.where(frame[..., channel, None] > 0, colours[channel], picture)
    return (255 * picture).round().astype(np.uint8)


def write_animation(frames: UInt8[np.ndarray, "t H W c"], frame_max: int, path: Path, per_second: int = 12) -> None:
    """Frames as an animated GIF; small ones are enlarged."""
    from PIL import Image

    pictures = [as_picture(frame, frame_max) for frame in frames]
    scale = max(1, round(320 / frames.shape[1]))
    images = [Image.fromarray(picture.repeat(scale, axis=0).repeat(scale, axis=1)) for picture in pictures]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=1000 // per_second, loop=0)
