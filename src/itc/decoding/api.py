"""The two public functions: `decode` for a world model's logits, `match` for your own gains."""

import operator
from numbers import Integral

from itc.decoding import checks
from itc.decoding.arrays import Library, library_of
from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges, grid_edges
from itc.types import AnyArray, Decoded, Matching


def decode(
    logits: AnyArray,
    previous: AnyArray,
    *,
    config: DecodeConfig | str,
    grid: tuple[int, int] | None = None,
    key: AnyArray | int | None = None,
    gumbel: AnyArray | None = None,
    codes: AnyArray | None = None,
    copyable: AnyArray | None = None,
    done: AnyArray | None = None,
) -> Decoded:
    """Turn a world model's next-frame logits into tokens, each copied from the previous frame or generated.

    Takes NumPy, JAX or PyTorch arrays and returns the same kind, on the same device. Works on any leading shape, and
    in JAX under `jit`, `vmap` and `scan`. No gradient flows through. JAX compiles once per shape, batch size included:
    where sizes vary, pad them to a few.

    Args:
        logits: (…, n, k) or (…, h, w, k) scores of k codes for each of the n = h·w cells. A code at −inf is never
            generated; a copy of it is still possible where the model prefers nothing else by more than c_w.
        previous: (…, n) or (…, h, w), as logits are: tokens of the previous frame, of any integer dtype. The answer's
            tokens and sources have the same shape, its tokens the same dtype.
        config: what copying and generating cost and how the best frame is found: the name of one of `PRESETS`, such as
            "conserving", or a `DecodeConfig`. There is no default, because the natural one, the paper's, never moves
            a token.
        grid: (h, w), rows and columns. Cells are in row-major order: cell i is in row i // w and column i % w. Not
            needed for logits (b, h, w, k) or with more leading dimensions.
        key: where noise is drawn from: a JAX key, a `torch.Generator`, a `numpy.random.Generator`, or an integer seed,
            which draws the same noise in every call. None is the library's global generator; JAX has none.
        gumbel: standard Gumbel noise of the shape of `logits`, finite, instead of a key.
        codes: number of codes in use; logits from there on count as −inf.
        copyable: booleans, (n,) or (h, w) for all frames or (…, n) or (…, h, w) for each; elsewhere tokens are always
            generated.
        done: (…) booleans: whether the episode ended at the step that leads from `previous` to this frame, so that
            this frame is the first of a new episode, into which nothing is copied. In a rollout loop:

                logits, reward, done = model(tokens, action)  # done: this step ended the episode
                tokens = itc.decode(logits, tokens, grid=(9, 9), config="conserving", key=key, done=done).tokens
                # tokens: the next frame, or where done the first of another episode

    Returns:
        `Decoded`: the tokens, the source of each (a cell's index in row-major order, −1 where generated), the objective
        reached and a bound on what was missed.

    Raises:
        ValueError: an argument does not fit; the message names it.
    """
    library = library_of("logits", logits)
    if library.operator is not None:
        return library.operator.decode(logits, previous, config, grid, key, gumbel, codes, copyable, done)
    config = checks.check_config(config)
    logits = library.array("logits", logits)
    previous = library.array("previous", previous, logits)
    checks.check_frames(logits, previous, (library.kind(logits), library.kind(previous)))
    lead, grid = checks.check_grid(grid, tuple(logits.shape))
    n, k = grid[0] * grid[1], logits.shape[-1]
    codes = _checked_codes(codes, k)
    checks.check_holds(previous, library.largest(previous), codes if isinstance(codes, int) else k)
    if library.visible(previous):
        checks.check_tokens(*library.extremes(previous), k)
    if library.visible(logits) and (codes is None or isinstance(codes, int) or library.visible(codes)):
        checks.check_logits(*library.extremes(library.tops(logits, codes)))

    key, gumbel = _checked_noise(library, config, logits, key, gumbel)
    if copyable is not None:
        copyable = library.array("copyable", copyable, logits)
        checks.check_copyable(copyable, lead, grid, library.kind(copyable) == "b")
        copyable = copyable.reshape(-1, n)
    if done is not None:
        done = library.array("done", done, logits)
        checks.check_done(done, lead, library.kind(done) == "b")
        done = done.reshape(-1)

    decoded = library.backend.decode(
        logits.reshape(-1, n, k),
        previous.reshape(-1, n),
        grid_edges(grid, config.reach),
        config,
        key,
        None if gumbel is None else gumbel.reshape(-1, n, k),
        codes,
        copyable,
        done,
    )
    return Decoded(
        tokens=decoded.tokens.reshape(previous.shape),
        source=decoded.source.reshape(previous.shape),
        value=decoded.value.reshape(lead),
        gap=decoded.gap.reshape(lead),
    )


def match(gains: AnyArray, edges: Edges, *, solver: str = "exact") -> Matching:
    """The one-to-one choice of edges with the largest total gain; edges that gain nothing are left out.

    Args:
        gains: (…, n, m) what each edge is worth, in the layout of `edges`; −inf forbids one. Any array library.
        edges: `grid_edges((h, w), max_distance)`, `all_edges(n, s)` for a full matrix, or a table of your own.
        solver: "exact", or "auction" to stay inside the compiled program on any device.
    """
    library = library_of("gains", gains)
    if library.operator is not None:
        return library.operator.match(gains, edges, solver=solver)
    gains = library.array("gains", gains)
    if not isinstance(edges, Edges):
        raise ValueError(f"edges must be Edges, such as grid_edges((9, 9), 4), got {type(edges).__name__}")
    if solver not in ("exact", "auction"):
        raise ValueError(f"solver must be 'exact' or 'auction', got {solver!r}")
    checks.check_gains(gains, library.kind(gains), edges.source.shape)
    if library.visible(gains):
        checks.check_gain_values(*library.extremes(gains))
    *lead, n, m = gains.shape
    found = library.backend.match_frames(gains.reshape(-1, n, m), edges, solver)
    return Matching(found.source.reshape(*lead, n), found.value.reshape(tuple(lead)), found.gap.reshape(tuple(lead)))


def _checked_noise(
    library: Library, config: DecodeConfig, logits: AnyArray, key: AnyArray | int | None, gumbel: AnyArray | None
) -> tuple[AnyArray | None, AnyArray | None]:
    """Where random numbers come from: a key of the library's kind, or Gumbel noise, or neither if none are needed."""
    gumbel = None if gumbel is None else library.array("gumbel", gumbel, logits)
    checks.check_noise(config, logits, key, gumbel)
    if gumbel is not None:
        seen = library.extremes(gumbel) if library.kind(gumbel) == "f" and library.visible(gumbel) else None
        checks.check_gumbel(gumbel, library.kind(gumbel), seen)
    elif isinstance(key, Integral) and not isinstance(key, bool):
        checks.check_seed(int(key))
        key = library.seeded(int(key), logits)
    elif key is not None and not library.is_key(key):
        raise ValueError(f"key must be {library.key_is} or an integer seed, got {type(key).__name__} {key!r}")
    elif key is None and config.needs_noise:
        key = library.global_key()
    return (key, gumbel) if config.needs_noise else (None, None)


def _checked_codes(codes: AnyArray | None, k: int) -> AnyArray | None:
    """A plain integer in range; an abstract JAX scalar is taken as it is."""
    if codes is None:
        return None
    if isinstance(codes, bool):
        raise ValueError(f"codes must be an integer, got bool {codes}")
    try:
        codes = operator.index(codes)
    except TypeError:
        dtype = getattr(codes, "dtype", None)
        if dtype is None or codes.shape != () or checks.dtype_kind(dtype) != "i":
            raise ValueError(f"codes must be an integer, got {type(codes).__name__} {codes!r}") from None
        return codes
    checks.check_codes(codes, k)
    return codes
