"""Write the tables of README and docs from the presets and the measured files in `results/`."""

import json
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

import itc
from itc.decoding.config import UNCAPPED

ROOT = Path(__file__).parent.parent


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
    measured = json.loads((ROOT / "results/demo.json").read_text())
    lines = [
        f"| decoder | right number of walkers | count error | stay rate (truth {measured['truth']['stay_rate']:.2f}) |",
        "|---|---|---|---|",
    ]
    for name, kept in measured["decoders"].items():
        row = f"| {name} | {kept['right_number']:.1%} | {kept['count_error']:.2f} | {kept['stay_rate']:.2f} |"
        lines.append(row.replace("| conserving |", "| **conserving** |"))
    return "\n".join(lines)


def bench_table(name: str) -> str:
    """What has a target."""
    records = json.loads((ROOT / f"results/bench_{name}.json").read_text())
    lines = ["| measured | value | 95 % interval | target |", "|---|---|---|---|"]
    for record in records:
        if record["target"] is not None:
            unit = "" if record["unit"] == "ratio" else f" {record['unit']}"
            interval = "" if record["interval"] is None else "{:.4g} … {:.4g}".format(*record["interval"])
            target = record["target"].replace("<=", "≤").replace(">=", "≥") + ("" if record["ok"] else " (**missed**)")
            lines.append(f"| {record['name']} | {record['value']:.4g}{unit} | {interval} | {target} |")
    return "\n".join(lines)


def record_table(game: str) -> str:
    """Returns of the quick agent by decoder, beside runs without imagination."""
    found = {}
    for name, label in ((game, None), (f"{game}_off", "imagination off"), (f"{game}_off_same_time", "… for as long")):
        path = ROOT / f"results/record/{name}.json"
        for record in json.loads(path.read_text()) if path.exists() else ():
            found.setdefault(label or f"`{record['settings']['decoder']}`", []).append(record)
    if not found:
        return "(not measured yet)"
    lines = ["| dreams decoded by | interactions | seeds | return, mean | each seed |", "|---|---|---|---|---|"]
    for label, records in found.items():
        returns = [record["return"] for record in records]
        each = " · ".join(f"{value:.2f}" for value in returns)
        mean, interactions = sum(returns) / len(returns), records[0]["interactions"]
        lines.append(f"| {label} | {interactions:,} | {len(records)} | {mean:.2f} | {each} |")
    chance = next(iter(found.values()))[0]["random_return"]
    lines.append(f"| playing at random | | | {chance:.2f} | |")
    return "\n".join(lines)


def truth_table(file: str, columns: dict[str, str], percent: bool) -> str:
    """A line for each decoder with its measures and their 95 % intervals."""
    path = ROOT / "results" / file
    if not path.exists():
        return "(not measured yet)"
    found = {(one["decoder"], one["measure"]): one for one in json.loads(path.read_text())}
    scale, digits = (100, 1) if percent else (1, 3)

    def cell(decoder: str, measure: str) -> str:
        if (decoder, measure) not in found:
            return "–"
        value, low, high = (scale * found[decoder, measure][part] for part in ("value", "low", "high"))
        return f"{value:.{digits}f} ({low:.{digits}f} … {high:.{digits}f})".replace("-", "−")

    lines = [f"| | {' | '.join(columns.values())} |", "|---" * (len(columns) + 1) + "|"]
    for decoder in dict.fromkeys(decoder for decoder, measure in found if measure in columns):
        label = "*the world itself*" if decoder == "simulator" else f"`{decoder}`"
        lines.append(f"| {label} | {' | '.join(cell(decoder, measure) for measure in columns)} |")
    return "\n".join(lines)


def accuracy_table(name: str, context: int = 20) -> str:
    """In percent."""
    columns = {
        "exact · context 1 · all": "exact, context 1",
        "plausible · context 1 · all": "plausible, context 1",
        "plausible · context 1 · with creatures": "… with creatures",
        "token error · context 1 · all": "token error, context 1",
        f"plausible · context {context} · all": f"plausible, context {context}",
        f"plausible · context {context} · with creatures": "… with creatures",
        f"token error · context {context} · all": f"token error, context {context}",
    }
    return truth_table(f"accuracy-{name}.json", columns, percent=True)


def gains_table(name: str) -> str:
    """Differences from plain sampling in points of percent."""
    columns = {
        f"{what} − sample · context 1 · {group}": f"{what}, {said}"
        for what in ("plausible", "token error")
        for group, said in (("all", "all"), ("with creatures", "with creatures"))
    }
    return truth_table(f"accuracy-{name}.json", columns, percent=True)


def positions_table() -> str:
    """Two models that differ in their positions only, in percent."""
    lines = [
        "| positions | decoder | plausible, context 1 | plausible, context 20 | token error, context 20 |",
        "|---" * 5 + "|",
    ]
    for label, name in (("1-D", "1d"), ("3-D and absolute", "3d")):
        path = ROOT / f"results/accuracy-craftax-classic-{name}-11-iterations.json"
        if not path.exists():
            return "(not measured yet)"
        found = {(one["decoder"], one["measure"]): one for one in json.loads(path.read_text())}
        for decoder in ("sample", "paper", "conserving"):
            cells = []
            for measure in ("plausible · context 1", "plausible · context 20", "token error · context 20"):
                value, low, high = (100 * found[decoder, f"{measure} · all"][part] for part in ("value", "low", "high"))
                cells.append(f"{value:.1f} ({low:.1f} … {high:.1f})")
            lines.append(f"| {label} | `{decoder}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def sweep_table(*files: str) -> str:
    """Settings of a decoder, single steps."""
    columns = {
        "duplication": "duplication",
        "disappearance": "disappearance",
        "count error": "count error",
        "stay rate": "stay rate",
        "novelty: tiles elsewhere": "tiles changed elsewhere",
        "novelty: player turned": "player turned",
        "plausible · context 20 · all": "plausible",
        "token error · context 20 · all": "token error",
    }
    rows = {}
    for file in files:
        path = ROOT / "results/sweep" / file
        if not path.exists():
            return "(not measured yet)"
        for one in json.loads(path.read_text()):
            rows.setdefault(one["decoder"], {})[one["measure"]] = one["value"]
    shown = {measure: title for measure, title in columns.items() if any(measure in row for row in rows.values())}
    lines = [f"| | {' | '.join(shown.values())} |", "|---" * (len(shown) + 1) + "|"]
    for name, row in rows.items():
        label = "*the world itself*" if name == "simulator" else name.replace("_", " ").replace(",", ", ")
        lines.append(f"| {label} | {' | '.join(f'{row[m]:.3f}' if m in row else '–' for m in shown)} |")
    return "\n".join(lines)


def hallucination_table(name: str) -> str:
    columns = {
        "duplication": "duplication",
        "disappearance": "disappearance",
        "transmutation": "transmutation",
        "count error": "count error",
        "stay rate": "stay rate",
        "novelty: tiles beside the player": "tiles changed beside the player",
        "novelty: tiles elsewhere": "… elsewhere",
    }
    return truth_table(f"hallucination-{name}.json", columns, percent=False)


def learned_world_table() -> str:
    """What matters most of the two tables of Craftax-classic, for four decoders."""
    found = {}
    for what in ("accuracy", "hallucination"):
        path = ROOT / f"results/{what}-craftax-classic.json"
        if not path.exists():
            return "(not measured yet)"
        found |= {(one["decoder"], one["measure"]): one["value"] for one in json.loads(path.read_text())}
    columns = {
        "plausible · context 20 · all": ("next frame plausible", "{:.1%}"),
        "duplication": ("duplicated, per creature and step", "{:.1%}"),
        "disappearance": ("lost, per creature and step", "{:.1%}"),
        "count error": ("count error", "{:.2f}"),
        "stay rate": ("stay rate", "{:.2f}"),
    }
    lines = [f"| decoder | {' | '.join(title for title, _ in columns.values())} |", "|---" * (len(columns) + 1) + "|"]
    for decoder in ("sample", "argmax", "paper", "conserving", "simulator"):
        cells = [
            form.format(found[decoder, measure]) if (decoder, measure) in found else ""
            for measure, (_, form) in columns.items()
        ]
        label = {"simulator": "*the world itself*", "conserving": "**conserving**"}.get(decoder, decoder)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


TRUTHS = ("craftax-classic", "minatar-breakout", "minatar-asterix", "minatar-freeway", "minatar-space_invaders")
TABLES = {
    **{("docs/findings.md", f"accuracy {name}"): partial(accuracy_table, name) for name in TRUTHS},
    ("docs/findings.md", "gains"): partial(gains_table, "craftax-classic"),
    ("docs/findings.md", "positions"): positions_table,
    ("docs/findings.md", "sweep costs"): partial(sweep_table, "craftax-classic-costs.json"),
    ("docs/findings.md", "sweep rim"): partial(sweep_table, "craftax-classic-rim.json"),
    ("docs/findings.md", "sweep shapes"): partial(
        sweep_table, "craftax-classic-noise.json", "craftax-classic-charge.json"
    ),
    ("docs/findings.md", "sweep breakout"): partial(
        sweep_table, "minatar-breakout.json", "minatar-breakout-sample.json"
    ),
    ("docs/findings.md", "sweep asterix"): partial(sweep_table, "minatar-asterix.json", "minatar-asterix-sample.json"),
    **{("docs/findings.md", f"hallucination {name}"): partial(hallucination_table, name) for name in TRUTHS},
    ("README.md", "breakout table"): partial(record_table, "breakout"),
    ("docs/training.md", "asterix table"): partial(record_table, "asterix"),
    ("README.md", "demo table"): demo_table,
    ("README.md", "learned world table"): learned_world_table,
    ("README.md", "bench table"): partial(bench_table, "decode"),
    ("README.md", "world table"): partial(bench_table, "world"),
    ("docs/decoders.md", "presets"): presets_table,
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


def main(check: bool) -> None:
    stale = []
    for (name, mark), table in TABLES.items():
        path = ROOT / name
        text = path.read_text()
        written = with_table(text, mark, table())
        if written != text:
            stale.append(f"{name}: {mark}")
            if not check:
                path.write_text(written)
    if check and stale:
        sys.exit(f"not current, run `python docs/write_tables.py`: {', '.join(stale)}")


if __name__ == "__main__":
    main(check="--check" in sys.argv)
