"""Which code every record in `results/` rests on, and whether that was changed after it was measured.

`python docs/records.py` lists where marks and git's history differ; `--mark` writes the marks, docs/older.json.
`python docs/write_tables.py` then puts them beside the numbers. A test compares marks and history.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
MARKS = ROOT / "docs/older.json"  # records older than their code, with the day they were measured

# Paths as git has them: folders, files, patterns; those after ":!" are left out. Shapes for a GPU do not run on a CPU.
ON_CPU = (":!src/itc/*_gpu.py", ":!src/itc/*_kernel.py", ":!src/itc/*_triton.py")
JAX_DECODER = ("src/itc/decoding", ":!src/itc/decoding/torch_*")
NETWORKS = ("src/itc/networks", "src/itc/tokenizers", "src/itc/world_models")
LEARNING = (
    *("src/itc/policies", "src/itc/replay.py", "src/itc/envs/base.py", "src/itc/envs/rollout.py"),
    *(f"src/itc/train/{name}.py" for name in ("agent", "collect", "imagine", "loop", "optimise")),
)
ONLY_ATARI = (
    *(":!src/itc/networks/hl_gauss.py", ":!src/itc/world_models/pop*", ":!src/itc/world_models/retention.py"),
    *(f":!src/itc/tokenizers/{name}.py" for name in ("perceptual", "rarity", "vqvae")),
    *(f":!src/itc/policies/{name}.py" for name in ("actor_critic_loss", "lstm", "token_player")),
)
ONLY_PATCHES = (
    *(":!src/itc/tokenizers/patches*", ":!src/itc/tokenizers/dist*", ":!src/itc/tokenizers/cutting.py"),
    *(f":!src/itc/world_models/{name}.py" for name in ("attention", "attention_cpu", "gpt", "losses", "tiles")),
    *(f":!src/itc/policies/{name}.py" for name in ("conv_gru", "encoders", "losses")),
)
PATCH_NETWORKS = (*JAX_DECODER, *NETWORKS, *ONLY_ATARI, *ON_CPU)
PATCH_AGENT = (*PATCH_NETWORKS, *LEARNING, "src/itc/envs/wrappers.py", "src/itc/train/patch_agent")
ATARI_AGENT = (
    *(*JAX_DECODER, *NETWORKS, *LEARNING, *ONLY_PATCHES, *ON_CPU),
    *("src/itc/envs/atari.py", "src/itc/envs/whole_episodes.py", "src/itc/train/vq_agent", "src/itc/presets/atari.py"),
)
CRAFTAX = (*PATCH_AGENT, "src/itc/envs/craftax.py", "src/itc/presets/craftax_classic.py")
MINATAR = (*PATCH_AGENT, "src/itc/envs/minatar.py", "src/itc/presets/minatar.py")
PLAYED = tuple(
    f"src/itc/evaluate/{name}.py" for name in ("following", "footing", "predictions", "recording", "scenes", "truth")
)
ACCURACY = (*PLAYED, "src/itc/evaluate/accuracy.py")
HALLUCINATION = (*PLAYED, "src/itc/evaluate/hallucination.py", "src/itc/evaluate/imagination.py")
TIMING = "src/itc/bench/measure.py"

RESTS_ON = {
    "accuracy-craftax-classic*.json": (*CRAFTAX, *ACCURACY),
    "accuracy-minatar-*.json": (*MINATAR, *ACCURACY),
    "hallucination-craftax-classic*.json": (*CRAFTAX, *HALLUCINATION),
    "hallucination-minatar-*.json": (*MINATAR, *HALLUCINATION),
    "sweep/craftax-classic-*.json": (*CRAFTAX, *ACCURACY, *HALLUCINATION),
    "sweep/minatar-*.json": (*MINATAR, *ACCURACY, *HALLUCINATION),
    "record/*.json": MINATAR,
    "ablation_*.json": MINATAR,
    "demo.json": (*JAX_DECODER, *ON_CPU, "src/itc/envs/walkers.py", "src/itc/evaluate/conservation.py"),
    "world_model_creatures.json": (
        *(*PATCH_AGENT, "src/itc/envs/creatures.py", "src/itc/presets/creatures.py"),
        *("src/itc/cli/world_model.py", "src/itc/evaluate/one_step.py"),
    ),
    "world_model_atari_*.json": (
        *(*ATARI_AGENT, "src/itc/evaluate/foresight.py", "src/itc/evaluate/imagination.py"),
        *("src/itc/evaluate/things.py", "src/itc/cli/world_model.py"),
    ),
    "bench_decode.json": ("src/itc/decoding", *ON_CPU, TIMING, "src/itc/bench/decode.py"),
    "bench_world.json": (
        *(*PATCH_NETWORKS, TIMING, "src/itc/envs", ":!src/itc/envs/atari.py", ":!src/itc/envs/listing*"),
        *("src/itc/train/imagine.py", "src/itc/train/optimise.py", "src/itc/train/patch_agent"),
        *(f"src/itc/bench/{name}.py" for name in ("envs", "imagination", "tokenizer", "world_model")),
    ),
    "bench_train.json": (*CRAFTAX, *MINATAR, TIMING, "src/itc/bench/train.py"),
    "bench_atari.json": (*ATARI_AGENT, TIMING, "src/itc/bench/atari*", "src/itc/bench/decode.py"),
    "bench_play.json": (
        *(*CRAFTAX, *MINATAR, TIMING, "src/itc/play", ":!src/itc/play/page", ":!src/itc/play/film.py"),
        *("src/itc/evaluate/hallucination.py", "src/itc/evaluate/scenes.py", "src/itc/train/world_folder.py"),
        *("src/itc/bench/play.py", "src/itc/bench/watching.py", "src/itc/cli/watched.py", "src/itc/cli/compilation.py"),
    ),
    "bench_gpu.json": (
        *(*JAX_DECODER, *NETWORKS, *LEARNING, "src/itc/envs", ":!src/itc/envs/listing*", "src/itc/presets"),
        *("src/itc/train/patch_agent", "src/itc/train/vq_agent", "src/itc/bench/gpu"),
    ),
    "bench_gpu_devices.json": (
        *(*JAX_DECODER, *NETWORKS, *ONLY_ATARI, *LEARNING, "src/itc/envs/craftax.py", "src/itc/envs/wrappers.py"),
        *("src/itc/train/patch_agent", "src/itc/train/mesh.py", "src/itc/sharding.py"),
        *("src/itc/presets/craftax_classic.py", "src/itc/bench/gpu", ":!src/itc/bench/gpu/vq_programs.py"),
    ),
    "gpu_shapes/*.json": (),  # compares two commits, neither the present one
    "test_times.json": ("tests", "src/itc"),
}

# Measured with the code of another commit than the one that last wrote the file: before it, where that commit only
# renamed measures, or where training took longer than commits; after it, where measuring again gave the same numbers,
# so that there was nothing to write.
MEASURED_WITH = {
    "bench_atari.json": "9f264f6",
    "bench_gpu_devices.json": "a0e637a",  # which changed the words of a mistake only
    "bench_train.json": "c2f67fb",
    "demo.json": "92a524e",
    "record/breakout.json": "92a524e",  # the last of its runs
    "record/breakout_hour_off.json": "92a524e",
}


class NoHistory(Exception):
    """There is no history to tell a record's age by."""


def records() -> list[str]:
    """Every record, by its name within `results/`."""
    return sorted(path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("*.json"))


def rests_on(record: str) -> tuple[str, ...]:
    """Paths of the code that a record's numbers depend on."""
    found = [paths for pattern, paths in RESTS_ON.items() if fnmatch(record, pattern)]
    if len(found) != 1:
        raise ValueError(
            f"results/{record} needs exactly one line in RESTS_ON of docs/records.py, and has {len(found)}"
        )
    return found[0]


def marked() -> dict[str, str]:
    """Records that are marked as older than their code, and when they were measured."""
    return json.loads(MARKS.read_text())


def older() -> dict[str, str]:
    """Records that are older than their code, and when they were measured, by git's history."""
    _check_history()
    found = {}
    for record in records():
        paths = rests_on(record)
        if not paths or _changed(f"results/{record}"):
            continue  # rests on nothing that changes, or was measured just now
        commit = MEASURED_WITH.get(record) or _git("log", "-1", "--format=%H", "--", f"results/{record}")
        if _changed(*paths) or _git("rev-list", "-1", f"{commit}..HEAD", "--", *paths):
            found[record] = _git("log", "-1", "--format=%as", commit)
    return found


def note(read: Iterable[str]) -> str:
    """What a table says below its numbers if records it was made from are older than their code."""
    read, marks = set(read), marked()
    if not (old := sorted(read & marks.keys())):
        return ""
    which = "Measured" if len(old) == len(read) else f"{', '.join(f'`{name}`' for name in old)}: measured"
    days = " and ".join(sorted({marks[name] for name in old}))
    return f"\n\n*{which} on {days}. The code was changed since; this was not measured again.*"


def _changed(*paths: str) -> bool:
    """Whether these were changed and not committed yet."""
    return bool(_git("status", "--porcelain", "--", *paths))


def _check_history() -> None:
    try:
        top, shallow = _git("rev-parse", "--show-toplevel", "--is-shallow-repository").splitlines()
    except (FileNotFoundError, subprocess.CalledProcessError) as problem:
        raise NoHistory("not a git checkout: records have no age here") from problem
    if Path(top).resolve() != ROOT.resolve():
        raise NoHistory("not a git checkout of its own: records have no age here")
    if shallow == "true":
        raise NoHistory("a shallow clone: git fetch --unshallow brings the history that records have their age from")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(mark: bool) -> None:
    found, before = older(), marked()
    for record in sorted(found.keys() | before.keys()):
        if found.get(record) != before.get(record):
            print(f"{record}: " + (f"older than its code, {found[record]}" if record in found else "no longer older"))
    if mark:
        MARKS.write_text(json.dumps(found, indent=1) + "\n")
    elif found != before:
        sys.exit("marks and history differ; measure again, or run `python docs/records.py --mark`")


if __name__ == "__main__":
    try:
        main(mark="--mark" in sys.argv)
    except NoHistory as missing:
        sys.exit(str(missing))
