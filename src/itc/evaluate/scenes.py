"""What frames of tokens show, real or imagined: kinds of tiles, and where the creatures are."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int16, Integer

from itc.envs.base import FIRST_ENTITY
from itc.evaluate.recording import Recording
from itc.tokenizers.patches import Codebook
from itc.types import EnvSpec

CREATURE = -2  # as a kind: something that moves stands here, so nothing is known of the ground


class Scene(NamedTuple):
    """Frames as a person would describe them, cell by cell of the view."""

    kinds: Int16[np.ndarray, "*b h w"]  # of the ground; CREATURE where one hides it
    creatures: Bool[np.ndarray, "*b classes h w"]


@runtime_checkable  # for type checks while tests run
class EntityClassifier(Protocol):
    """Maps tokens to the tiles and creatures they show."""

    stride: int  # squared distance a creature covers in a step, at most

    def __call__(self, tokens: Integer[np.ndarray, "*b n"]) -> Scene: ...

    def truth(self, recording: Recording) -> Scene: ...

    def error(self, recording: Recording) -> float: ...


class TileClassifier:
    """For worlds whose tokens are tiles: a code means what the simulator says where it is seen most often.

    Codes that the simulator did not show mean what the nearest of the others means.
    """

    stride = 1  # creatures walk in four directions

    def __init__(self, spec: EnvSpec, codebook: Codebook, recording: Recording):
        self.spec = spec  # `_in_view` needs it
        patches = np.asarray(codebook.patches[: int(codebook.size)], np.float32).reshape(int(codebook.size), -1)
        tokens, tiles = self._in_view(recording.tokens).ravel(), self._tiles(recording).ravel()
        votes = np.zeros((len(patches), int(tiles.max()) + 1), np.int64)
        np.add.at(votes, (tokens, tiles), 1)
        shown = np.flatnonzero(votes.any(axis=1))
        distance = np.square(patches[shown]).sum(axis=1)[None] - 2 * patches @ patches[shown].T
        self._know(spec, votes.argmax(axis=1).astype(np.int16)[shown[distance.argmin(axis=1)]])

    @classmethod
    def from_meaning(cls, spec: EnvSpec, meaning: Int16[np.ndarray, " codes"]) -> "TileClassifier":
        """A classifier that was fitted before: which tile each code shows."""
        known = cls.__new__(cls)
        known._know(spec, meaning)
        return known

    def _know(self, spec: EnvSpec, meaning: Int16[np.ndarray, " codes"]) -> None:
        self.spec, self.meaning = spec, meaning
        self.creature_tiles = FIRST_ENTITY + np.array([spec.entities.index(name) for name in spec.creatures], np.int16)

    def __call__(self, tokens: Integer[np.ndarray, "*b n"]) -> Scene:
        return self.scene_of(self.meaning[self._in_view(tokens)])

    def truth(self, recording: Recording) -> Scene:
        """The ground truth, by the simulator."""
        return self.scene_of(self._tiles(recording))

    def scene_of(self, tiles: Int16[np.ndarray, "*b h w"]) -> Scene:
        creatures = tiles[..., None, :, :] == self.creature_tiles[:, None, None]
        return Scene(np.where(creatures.any(axis=-3), np.int16(CREATURE), tiles), creatures)

    def error(self, recording: Recording) -> float:
        """Share of real cells of the view that are misclassified, by the simulator's ground truth."""
        return float((self.meaning[self._in_view(recording.tokens)] != self._tiles(recording)).mean())

    def _in_view(self, tokens: Integer[np.ndarray, "*b n"]) -> Integer[np.ndarray, "*b h w"]:
        return tokens.reshape(*tokens.shape[:-1], *self.spec.grid)[..., : self.spec.view[0], :]

    def _tiles(self, recording: Recording) -> Int16[np.ndarray, "*b h w"]:
        return recording.tiles[..., : self.spec.view[0], :]


class PixelClassifier:
    """For worlds whose frames have one binary channel per kind of thing: every pixel says what it is."""

    stride = 2  # a ball goes diagonally

    def __init__(self, spec: EnvSpec, codebook: Codebook):
        self.spec = spec
        self.patches = np.asarray(codebook.patches[: int(codebook.size)]).astype(bool)
        if self.patches.shape[-1] != len(spec.entities) - 1:
            raise ValueError(f"{spec.name} has {self.patches.shape[-1]} channels but names {len(spec.entities) - 1}")
        self.moving = [spec.entities.index(name) - 1 for name in spec.creatures]

    def __call__(self, tokens: Integer[np.ndarray, "*b n"]) -> Scene:
        (h, w), (_, ph, pw, _) = self.spec.grid, self.patches.shape
        lead = tokens.shape[:-1]
        pixels = self.patches[tokens].reshape(*lead, h, w, ph, pw, -1)
        pixels = pixels.swapaxes(-4, -3).reshape(*lead, h * ph, w * pw, -1)
        still = np.delete(pixels, self.moving, axis=-1)
        kinds = (still << np.arange(still.shape[-1])).sum(axis=-1).astype(np.int16)
        return Scene(kinds, np.moveaxis(pixels[..., self.moving], -1, -3))

    def truth(self, recording: Recording) -> Scene:
        return self(recording.tokens)

    def error(self, recording: Recording) -> float:
        return 0.0  # nothing is guessed


def classifier_for(spec: EnvSpec, codebook: Codebook, recording: Recording) -> EntityClassifier:
    """The entity classifier of an environment, fitted to a recording where it has to be."""
    return PixelClassifier(spec, codebook) if spec.frame_max == 1 else TileClassifier(spec, codebook, recording)
