"""The world model's loss once more, in plain NumPy and float64, without dropout: what the fast one must equal."""

import numpy as np

from itc.world_models.layout import rotary_angles


def as_numpy(model) -> dict[str, np.ndarray]:
    """All parameters in float64, by the path of their names."""
    import jax

    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path): np.asarray(leaf, np.float64) for path, leaf in leaves}


def loss(p: dict[str, np.ndarray], model, tokens, actions, rewards, dones, bucket: int) -> float:
    b, t, n = tokens[:, :-1].shape
    s, heads = n + 1, model.config.heads
    cells = p[".token_embedding"][tokens[:, :-1]]
    if model.neighbourhood is not None:
        cells = cells + _neighbourhood(p, tokens[:, :-1], model.layout.grid)
    x = np.concatenate([cells, p[".action_embedding"][actions][:, :, None]], axis=2)
    if ".slot_embedding" in p:
        x = x + p[".slot_embedding"]
    layout = model.layout
    positions = layout.positions_1d() if model.config.rotary == "1d" else layout.positions_3d()
    angles = rotary_angles(positions[:t], model.config.head_size).astype(np.float64).reshape(t * s, -1)
    block = np.repeat(np.arange(t), s)
    hidden = block[None, :] > block[:, None]
    x = x.reshape(b, t * s, -1)
    for layer in range(model.config.layers):

        def linear(x, name, layer=layer):
            return x @ p[f".layers.{name}.weight"][layer] + p[f".layers.{name}.bias"][layer]

        def norm(x, name, layer=layer):
            return _norm(x, p[f".layers.{name}.scale"][layer], p[f".layers.{name}.shift"][layer])

        projected = linear(norm(x, "attention_norm"), "attention_in").reshape(b, t * s, 3, heads, -1)
        q, k, v = np.moveaxis(projected, 2, 0).swapaxes(2, 3)
        q, k = _rotate(q, angles), _rotate(k, angles)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        weights = _softmax(np.where(hidden, -np.inf, scores))
        x = x + linear((weights @ v).swapaxes(1, 2).reshape(x.shape), "attention_out")
        x = x + linear(_gelu(linear(norm(x, "feed_norm"), "feed_in")), "feed_out")
    x = _norm(x, p[".final_norm.scale"], p[".final_norm.shift"]).reshape(b, t, s, -1)

    def head(x, name, outputs=None):
        inner = np.maximum(0, x @ p[f".{name}.inner.weight"] + p[f".{name}.inner.bias"])
        return (inner @ p[f".{name}.outer.weight"] + p[f".{name}.outer.bias"])[..., :outputs]

    return (
        _cross_entropy(head(x[:, :, :-1], "token_head", bucket), tokens[:, 1:])
        + _cross_entropy(head(x[:, :, -1], "reward_head"), (rewards >= 0.5).astype(int))
        + _cross_entropy(head(x[:, :, -1], "done_head"), dones.astype(int))
    )


def _neighbourhood(p, tokens, grid):
    """Cell by cell: the embeddings of the nine cells around it, zeros outside the grid, times a matrix."""
    (h, w), embedded = grid, p[".neighbourhood.embedding"][tokens]
    around = np.zeros((*tokens.shape, 9, embedded.shape[-1]))
    for cell in range(h * w):
        row, column = divmod(cell, w)
        for place in range(9):
            y, x = row + place // 3 - 1, column + place % 3 - 1
            if 0 <= y < h and 0 <= x < w:
                around[:, :, cell, place] = embedded[:, :, y * w + x]
    mixed = around.reshape(*tokens.shape, -1) @ p[".neighbourhood.mix.weight"]
    return mixed + p[".neighbourhood.mix.bias"]


def _norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def _rotate(x, angles):
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate(
        [first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)], axis=-1
    )


def _softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _cross_entropy(logits, labels):
    return -np.log(np.take_along_axis(_softmax(logits), labels[..., None], axis=-1)).mean()
