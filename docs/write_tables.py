"""Write the tables of README and docs from the presets and the measured files in `results/`."""

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
from records import RESULTS, note

import itc
from itc.bench.atari import PAPER
from itc.decoding.config import UNCAPPED
from itc.evaluate.accuracy import MINUS
from itc.evaluate.hallucination import SIMULATOR
from itc.evaluate.records import Measure, read_measures
from itc.evaluate.statistics import mean_interval

ROOT = Path(__file__).parent.parent
READ: list[str] = []  # records that the table under way is made from


def record(name: str) -> Path:
    """The file of a record, noted as read: tables of records older than their code say so."""
    READ.append(name)
    return RESULTS / name


def presets_table() -> str:
    """Field values of every preset; a dot where a field has its default."""
    names = [field.name for field in fields(itc.DecodeConfig)]
    default = itc.DecodeConfig()
    lines = [f"| preset | {' | '.join(f'`{name}`' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    lines.append(f"| *default* | {' | '.join(_text(getattr(default, name)) for name in names)} |")
    for preset, config in itc.PRESETS.items():
        values = (
            "·" if getattr(config, name) == getattr(default, name) else _text(getattr(config, name)) for name in names
        )
        lines.append(f"| `{preset}` | {' | '.join(values)} |")
    return "\n".join(lines)


def _text(value: object) -> str:
    return "no cap" if value == UNCAPPED else str(value)


def demo_table() -> str:
    measured = json.loads(record("demo.json").read_text())
    lines = [
        f"| decoder | right number of walkers | count error | stay rate (truth {measured['truth']['stay_rate']:.2f}) |",
        "|---|---|---|---|",
    ]
    for name, one in measured["decoders"].items():
        row = f"| {name} | {one['right_number']:.1%} | {one['count_error']:.2f} | {one['stay_rate']:.2f} |"
        lines.append(row.replace("| conserving |", "| **conserving** |"))
    return "\n".join(lines)


def bench_table(name: str, everything: bool = False, without: str = "") -> str:
    """Records with a target, or all of them; `without` is a prefix to leave out of the names."""
    if not (RESULTS / f"bench_{name}.json").exists():
        return "(not measured yet)"
    records = json.loads(record(f"bench_{name}.json").read_text())
    lines = ["| measured | value | 95 % interval | target |", "|---|---|---|---|"]
    for one in records:
        if one["target"] is not None or everything:
            unit = "" if one["unit"] == "ratio" else f" {one['unit']}"
            interval = "" if one["interval"] is None else "{:.4g} … {:.4g}".format(*one["interval"])
            target = (one["target"] or "").replace("<=", "≤").replace(">=", "≥")
            target += " (**missed**)" if one["ok"] is False else ""
            lines.append(f"| {one['name'].removeprefix(without)} | {one['value']:.4g}{unit} | {interval} | {target} |")
    return "\n".join(lines)


def gpu_shapes_table() -> str:
    """Times on a CPU after the shapes for a GPU came, over those before; of code that did not change, too."""
    lines = ["| `itc bench` | what | times compared | median | smallest | largest |", "|---|---|---|---|---|---|"]
    for bench in ("world", "decode"):
        before, after = (
            {one["name"]: one["value"] for one in json.loads(record(f"gpu_shapes/{bench}-{when}.json").read_text())
             if one["unit"] == "ms"} for when in ("before", "after")
        )  # fmt: skip
        unchanged = [name for name in before if any(word in name for word in ("plain", "naive", "OTT-JAX", "SciPy"))]
        for what, names in (("ours", before.keys() - set(unchanged)), ("unchanged code", unchanged)):
            ratios = sorted(after[name] / before[name] for name in names)
            of = " | ".join(f"{value:.2f}" for value in (statistics.median(ratios), ratios[0], ratios[-1]))
            lines.append(f"| `{bench}` | {what} | {len(ratios)} | {of} |")
    return "\n".join(lines)


HALF_WAY = (25_344, 29_952)  # interactions: five iterations around 27,648 of the 46,080 of a quick run
SECOND_HALF = (23_040, 46_080)


def returns_of(game: str) -> dict[str, list[dict]]:
    """Runs of the quick agent by decoder, and those without imagination."""
    found = {}
    for name, label in (
        (game, None),
        (f"{game}_off", "imagination off"),
        (f"{game}_off_same_time", "imagination off, same time"),
    ):
        if (RESULTS / f"record/{name}.json").exists():
            for one in json.loads(record(f"record/{name}.json").read_text()):
                found.setdefault(label or f"`{one['settings']['decoder']}`", []).append(one)
    return found


def returns_table(game: str) -> str:
    """Returns of the quick agent by decoder, next to runs without imagination."""
    found = returns_of(game)
    if not found:
        return "(not measured yet)"
    lines = ["| decoder in imagination | interactions | seeds | return (95 %) |", "|---|---|---|---|"]
    for label, runs in found.items():
        returns = _mean([run["return"] for run in runs])
        lines.append(f"| {label} | {runs[0]['interactions']:,} | {len(runs)} | {returns} |")
    lines.append(f"| random play | | | {next(iter(found.values()))[0]['random_return']:.2f} |")
    return "\n".join(lines)


def record_table(game: str) -> str:
    """The same with each seed's return, the return half-way, and the share of imagined frames that cannot be."""
    found = returns_of(game)
    if not found:
        return "(not measured yet)"
    titles = ("return (95 %)", "of each seed", "training return at 27,648", "impossible imagined frames")
    lines = [f"| decoder in imagination | seeds | {' | '.join(titles)} |", "|---" * (len(titles) + 2) + "|"]
    for label, runs in found.items():
        returns = [run["return"] for run in runs]
        half_way = [value for run in runs if (value := _mean_between(run, "return", *HALF_WAY)) is not None]
        cells = (_mean(returns), " · ".join(f"{value:.1f}" for value in returns), _mean(half_way), _impossible(runs))
        lines.append(f"| {label} | {len(runs)} | {' | '.join(cells)} |")
    lines.append(f"| random play | | {next(iter(found.values()))[0]['random_return']:.2f} | | | |")
    return "\n".join(lines)


def _impossible(runs: list[dict]) -> str:
    """Mean over seeds of the share in the second half of training."""
    each = [value for run in runs if (value := _mean_between(run, "imagination/impossible", *SECOND_HALF)) is not None]
    return f"{sum(each) / len(each):.1%}" if each else "–"


def ablation_table() -> str:
    """The quick agent with one setting at a time put back to what the paper has, seed 0."""
    if not (RESULTS / "ablation_breakout.json").exists():
        return "(not measured yet)"
    lines = ["| put back | return | impossible frames | reward late / early |", "|---|---|---|---|"]
    for run in json.loads(record("ablation_breakout.json").read_text()):
        changed = ", ".join(f"`{name}={value}`" for name, value in run["settings"].items() if name != "seed")
        impossible, early, late = (
            _mean_between(run, f"imagination/{name}", *SECOND_HALF)
            for name in ("impossible", "early_reward", "late_reward")
        )
        lines.append(f"| {changed or 'nothing'} | {run['return']:.1f} | {impossible:.1%} | {late / early:.2f} |")
    return "\n".join(lines)


def _mean_between(run: dict, name: str, low: int, high: int) -> float | None:
    """Mean of a curve over iterations that ended within these numbers of interactions."""
    points = run.get("curves", {}).get(name, {})
    inside = [value for x, value in points.items() if low <= int(x) <= high]
    return sum(inside) / len(inside) if inside else None


def _mean(values: list[float]) -> str:
    if not values:
        return "–"
    mean = f"{sum(values) / len(values):.1f}"
    return mean if len(values) == 1 else "{} ({:.1f} … {:.1f})".format(mean, *mean_interval(np.array(values)))


def measured(*files: str) -> dict[tuple[str, str], Measure]:
    """The measures in files of `results/`, by decoder and name."""
    return {(one.decoder, one.measure): one for file in files for one in read_measures(record(file))}


def decoders_table(
    found: dict[tuple[str, str], Measure], columns: dict[str, str], cell: Callable[[Measure], str]
) -> str:
    """A row for each decoder, a column for each measure that at least one of them has."""
    shown = {measure: title for measure, title in columns.items() if any(measure == known for _, known in found)}
    decoders = dict.fromkeys(decoder for decoder, measure in found if measure in shown)
    lines = [f"| | {' | '.join(shown.values())} |", "|---" * (len(shown) + 1) + "|"]
    for decoder in decoders:
        cells = [cell(found[decoder, measure]) if (decoder, measure) in found else "–" for measure in shown]
        lines.append(f"| {_decoder(decoder)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _decoder(name: str) -> str:
    """A preset, or the settings of a sweep."""
    if name == SIMULATOR:
        return "*the simulator*"
    return f"`{name}`" if name in itc.PRESETS else name.replace("_", " ").replace(",", ", ")


def _percent(one: Measure) -> str:
    value, low, high = (100 * part for part in (one.value, one.low, one.high))
    return f"{value:.1f} ({low:.1f} … {high:.1f})".replace("-", "−")


def _rate(one: Measure) -> str:
    return f"{one.value:.3f} ({one.low:.3f} … {one.high:.3f})"


def whole_context(found: dict[tuple[str, str], Measure]) -> str:
    """How many frames the model was given at most, as in a measure's name: `context 20`."""
    contexts = {part for _, name in found for part in name.split(" · ") if part.startswith("context ")}
    return max(contexts, key=lambda context: int(context.removeprefix("context ")))


def accuracy_table(name: str) -> str:
    found = measured(f"accuracy-{name}.json")
    whole = whole_context(found)
    columns = {
        "exact · context 1 · all": "exact, context 1",
        "plausible · context 1 · all": "plausible, context 1",
        "plausible · context 1 · with creatures": "… with creatures",
        "token error · context 1 · all": "token error, context 1",
        f"plausible · {whole} · all": f"plausible, {whole}",
        f"plausible · {whole} · with creatures": "… with creatures",
        f"token error · {whole} · all": f"token error, {whole}",
    }
    return decoders_table(found, columns, _percent)


def gains_table() -> str:
    """Differences from plain sampling in percentage points."""
    columns = {
        f"{what}{MINUS} · context 1 · {group}": f"{what}, {group}"
        for what in ("plausible", "token error")
        for group in ("all", "with creatures")
    }
    return decoders_table(measured("accuracy-craftax-classic.json"), columns, _percent)


def positions_table() -> str:
    """Two models that differ only in their position encodings."""
    columns = ("plausible · context 1", "plausible · context 20", "token error · context 20")
    titles = " | ".join(name.replace(" ·", ",") for name in columns)
    lines = [f"| positions | decoder | {titles} |", "|---" * 5 + "|"]
    for label, name in (("1-D", "1d"), ("3-D and absolute", "3d")):
        found = measured(f"accuracy-craftax-classic-{name}-11-iterations.json")
        for decoder in ("sample", "paper", "conserving"):
            cells = " | ".join(_percent(found[decoder, f"{measure} · all"]) for measure in columns)
            lines.append(f"| {label} | `{decoder}` | {cells} |")
    return "\n".join(lines)


def sweep_table(*files: str) -> str:
    """Settings of a decoder, measured one step ahead."""
    found = measured(*(f"sweep/{file}.json" for file in files))
    whole = whole_context(found)
    columns = {
        "duplication": "duplication",
        "disappearance": "disappearance",
        "count error": "count error",
        "stay rate": "stay rate",
        "novelty: tiles elsewhere": "tiles changed elsewhere",
        "novelty: player turned": "player turned",
        f"plausible · {whole} · all": "plausible",
        f"token error · {whole} · all": "token error",
    }
    return decoders_table(found, columns, lambda one: f"{one.value:.3f}")


def hallucination_table(name: str) -> str:
    columns = {
        "duplication": "duplication",
        "disappearance": "disappearance",
        "transmutation": "transmutation",
        "count error": "count error",
        "stay rate": "stay rate",
        "novelty: tiles beside the player": "tiles changed next to the player",
        "novelty: tiles elsewhere": "tiles changed elsewhere",
    }
    return decoders_table(measured(f"hallucination-{name}.json"), columns, _rate)


def foresight_table(name: str) -> str:
    """Tokenizer and world model next to baselines without learning, how often frames show paddle and ball, and how long
    imagined rollouts keep the ball."""
    found = json.loads(record(f"world_model_{name}.json").read_text())
    lines = ["| | learned | baseline without learning |", "|---|---|---|"]
    error, mean = found["tokenizer error"], found["mean frame error"]
    lines.append(f"| reconstruction error of a frame | {error:.2g} | {mean:.2g} (the mean frame) |")
    copy, marginal = found["copy loss"], found["marginal entropy"]
    lines.append(
        f"| loss per token, nats | {found['token loss']:.3f} | {copy:.3f} (copying the last frame, smoothed), "
        f"{marginal:.3f} (each cell's marginal distribution) |"
    )
    right, copied = found["token accuracy"], found["copy accuracy"]
    lines += [f"| token accuracy | {right:.1%} | {copied:.1%} (copying the last frame) |", ""]
    seen = [name.removeprefix("paddle ") for name in found if name.startswith("paddle ") and ", step" not in name]
    lines += ["| frames that show | the paddle | the ball |", "|---|---|---|"]
    for where in seen:
        label = where.replace("kept in tokens", "reconstructed, in its place, of the frames that show it")
        label = label.replace("in tokens", "reconstructed from tokens").replace("imagined last", "last imagined frame,")
        lines.append(f"| {label} | {found[f'paddle {where}']:.1%} | {found[f'ball {where}']:.1%} |")
    return "\n".join([*lines, *_ball_by_step(found)])


def _ball_by_step(found: dict[str, float]) -> list[str]:
    """How often rollouts whose start shows the ball show it after each step; nothing where no start does."""
    steps = range(1, 1 + sum(name.startswith("ball real, step ") for name in found))
    if not steps or not found["ball in tokens"]:
        return []
    lines = ["", f"| the ball after step | {' | '.join(map(str, steps))} |", "|---" * (len(steps) + 1) + "|"]
    for name in found:
        if name.startswith("ball ") and name.endswith(", step 1"):
            whose = name.removesuffix("1")
            cells = " | ".join(f"{found[f'{whose}{step}']:.0%}" for step in steps)
            lines.append(f"| {whose.removeprefix('ball ').removesuffix(', step ')} | {cells} |")
    return lines


def learned_world_table() -> str:
    """The main measures of Craftax-classic, for four decoders and the simulator."""
    found = measured("accuracy-craftax-classic.json", "hallucination-craftax-classic.json")
    columns = {
        f"plausible · {whole_context(found)} · all": ("next frame plausible", "{:.1%}"),
        "duplication": ("duplication, per creature and step", "{:.1%}"),
        "disappearance": ("disappearance, per creature and step", "{:.1%}"),
        "count error": ("count error", "{:.2f}"),
        "stay rate": ("stay rate", "{:.2f}"),
    }
    lines = [f"| decoder | {' | '.join(title for title, _ in columns.values())} |", "|---" * (len(columns) + 1) + "|"]
    for decoder in ("sample", "argmax", "paper", "conserving", SIMULATOR):
        cells = [
            form.format(found[decoder, measure].value) if (decoder, measure) in found else ""
            for measure, (_, form) in columns.items()
        ]
        label = {SIMULATOR: "*the simulator*", "conserving": "**conserving**"}.get(decoder, decoder)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def creatures_table() -> str:
    """One step ahead in new worlds of `creatures`."""
    found = json.loads(record("world_model_creatures.json").read_text())
    lines = ["| right, one step ahead | |", "|---|---|"]
    lines += [
        f"| {label} | {found[name]:.2%} |"
        for name, label in (
            ("tokens", "tokens"),
            ("settled", "tokens that were certain, where nothing moves by chance"),
            ("frames", "whole frames"),
        )
    ]
    return "\n".join(lines)


def test_times_table() -> str:
    """Processor seconds of the tests of each folder, with an empty and with a full compilation cache."""
    kept = json.loads(record("test_times.json").read_text())
    folders = sorted(set().union(*kept.values()))
    lines = [f"| folder | tests | {' | '.join(kept)} |", "|---" * (len(kept) + 2) + "|"]
    for folder in folders:
        tests = max(times[folder]["tests"] for times in kept.values() if folder in times)
        cells = (f"{times[folder]['processor_seconds']:.0f}" if folder in times else "" for times in kept.values())
        lines.append(f"| {folder} | {tests} | {' | '.join(cells)} |")
    sums = (sum(one["processor_seconds"] for one in times.values()) for times in kept.values())
    lines.append(f"| total | | {' | '.join(f'{total:.0f}' for total in sums)} |")
    return "\n".join(lines)


def gpu_presets_table() -> str:
    """Memory and estimated hours of each preset and device."""
    lines = ["| preset | device | memory | estimated run | with CUDA graphs |", "|---|---|---|---|---|"]
    for (preset, device), programs in gpu_records().items():
        if (run := programs.get("whole run")) is None:  # decoders on their own
            continue
        cells = (
            f"{run['memory']['value']:.1f} GB",
            *(f"{run[name]['value']:.1f} h" for name in ("estimate", "estimate in CUDA graphs")),
        )
        lines.append(f"| `{preset}` | {device} | {' | '.join(cells)} |")
    return "\n".join(lines)


def gpu_programs_table() -> str:
    """Every program of every preset."""
    columns = {
        "launches": "{:,.0f}",
        "loops of unknown length": "{:.0f}",
        "branches": "{:.0f}",
        "host callbacks": "{:.0f}",
        "memory": "{:.2f} GB",
        "compile time": "{:.0f} s",
        "arithmetic": "{:.3g} TFLOP",
        "memory traffic": "{:.3g} GB",
        "estimate": "{:.3g} ms",
    }
    lines = [f"| preset, device | program | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for (preset, device), programs in gpu_records().items():
        for program, found in programs.items():
            if "launches" in found:
                cells = (_with_target(found[name], form) for name, form in columns.items())
                lines.append(f"| `{preset}`, {device} | {program} | {' | '.join(cells)} |")
    return "\n".join(lines)


def gpu_devices_table() -> str:
    """What several devices exchange in each program, and how much faster they are than one."""
    columns = {
        "collectives": "{:,.0f}",
        "collectives per step": "{:,.0f}",
        "exchange": "{:.2f} ms",
        "memory": "{:.2f} GB",
        "launches": "{:,.0f}",
        "one device": "{:.3g} ms",
        "estimate": "{:.3g} ms",
        "speed-up": "{:.1f}",
    }
    heading = (
        "preset, devices | program | collectives | of them in every step | sent by each | exchange | memory of each"
    )
    lines = [f"| {heading} | launches of each | one device | estimate | speed-up |", "|---" * 11 + "|"]
    for (preset, devices), programs in gpu_records("bench_gpu_devices.json").items():
        for program, found in programs.items():
            if "launches" in found:
                cells = [_with_target(found[name], form) for name, form in columns.items()]
                sent = sum(one["value"] for name, one in found.items() if name.startswith("sent by"))
                cells.insert(2, f"{sent:.3g} MB" if sent else "0")
                lines.append(f"| `{preset}`, {devices} | {program} | {' | '.join(cells)} |")
        run = programs["whole run"]
        for way in ("", " in CUDA graphs"):
            hours = [f"{run[name + way]['value']:.2f} h" for name in ("one device", "estimate")]
            cells = ["", "", "", "", f"{run['memory']['value']:.2f} GB", "", *hours]
            speed_up = _with_target(run[f"speed-up{way}"], "{:.2f}")
            lines.append(f"| `{preset}`, {devices} | whole run{way} | {' | '.join(cells)} | {speed_up} |")
    return "\n".join(lines)


def _with_target(one: dict, form: str) -> str:
    value = form.format(one["value"])
    if one["target"] is None or one["value"] == 0:
        return value
    wanted = one["target"].replace("<= ", "≤ ").replace(">= ", "≥ ")
    return f"{value} ({wanted}{'' if one['ok'] else ', **missed**'})"


def gpu_records(name: str = "bench_gpu.json") -> dict[tuple[str, str], dict[str, dict[str, dict]]]:
    """By preset and device, by program, by number."""
    found: dict = {}
    for one in json.loads(record(name).read_text()):
        where, program, number = one["name"].split(": ")
        preset, device = where.split(" on ")
        found.setdefault((preset, device), {}).setdefault(program, {})[number] = one
    return found


MEASURED_ENVS = (
    "craftax-classic",
    "craftax-classic-world",
    "minatar-breakout",
    "minatar-asterix",
    "minatar-freeway",
    "minatar-space_invaders",
)
TABLES = {
    **{("docs/findings.md", f"accuracy {name}"): partial(accuracy_table, name) for name in MEASURED_ENVS},
    ("docs/findings.md", "gains"): gains_table,
    ("docs/findings.md", "positions"): positions_table,
    ("docs/findings.md", "sweep costs"): partial(sweep_table, "craftax-classic-costs"),
    ("docs/findings.md", "sweep rim"): partial(sweep_table, "craftax-classic-rim"),
    ("docs/findings.md", "sweep shapes"): partial(sweep_table, "craftax-classic-noise", "craftax-classic-charge"),
    ("docs/findings.md", "sweep breakout"): partial(sweep_table, "minatar-breakout", "minatar-breakout-sample"),
    ("docs/findings.md", "sweep asterix"): partial(sweep_table, "minatar-asterix", "minatar-asterix-sample"),
    **{("docs/findings.md", f"hallucination {name}"): partial(hallucination_table, name) for name in MEASURED_ENVS},
    ("README.md", "breakout table"): partial(returns_table, "breakout"),
    ("docs/imagination.md", "breakout records"): partial(record_table, "breakout"),
    ("docs/imagination.md", "breakout hour"): partial(returns_table, "breakout_hour"),
    ("docs/training.md", "asterix table"): partial(record_table, "asterix"),
    ("docs/imagination.md", "ablation table"): ablation_table,
    ("docs/findings.md", "demo table"): demo_table,
    ("README.md", "learned world table"): learned_world_table,
    ("docs/performance.md", "bench table"): partial(bench_table, "decode"),
    ("docs/performance.md", "world table"): partial(bench_table, "world"),
    ("docs/performance.md", "train table"): partial(bench_table, "train", everything=True),
    ("docs/performance.md", "play table"): partial(bench_table, "play", everything=True),
    ("docs/environments.md", "creatures table"): creatures_table,
    ("docs/decoders.md", "presets"): presets_table,
    ("CONTRIBUTING.md", "test times"): test_times_table,
    ("docs/gpu.md", "gpu presets"): gpu_presets_table,
    ("docs/gpu.md", "gpu programs"): gpu_programs_table,
    ("docs/gpu.md", "gpu shapes"): gpu_shapes_table,
    ("docs/gpu.md", "gpu devices"): gpu_devices_table,
    ("docs/atari.md", "foresight table"): partial(foresight_table, "atari_breakout"),
    ("docs/atari.md", "atari table"): partial(bench_table, "atari", everything=True, without=f"{PAPER}: "),
}


def with_table(text: str, mark: str, table: str) -> str:
    """The text with the table between its marks; the first time, after the lone mark."""
    start, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, after = text.partition(start)
    if not found:
        raise ValueError(f"no mark {start}")
    if end in after:
        after = after.partition(end)[2]
    return f"{before}{start}\n{table}\n{end}{after}"


def written(table: Callable[[], str]) -> str:
    """The table, and below it whether its records are older than their code."""
    READ.clear()
    text = table()
    return text + note(READ)


def main(check: bool) -> None:
    stale = []
    for (name, mark), table in TABLES.items():
        path = ROOT / name
        before = path.read_text()
        after = with_table(before, mark, written(table))
        if after != before:
            stale.append(f"{name}: {mark}")
            if not check:
                path.write_text(after)
    if check and stale:
        sys.exit(f"not current, run `python docs/write_tables.py`: {', '.join(stale)}")


if __name__ == "__main__":
    main(check="--check" in sys.argv)
