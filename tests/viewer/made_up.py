"""Made-up files of runs as the measuring commands write them, with numbers that are easy to recognise."""

import json
import shutil
from pathlib import Path
from typing import Any

EXACT = {"sample": 0.2, "argmax": 0.5, "paper": 0.3, "conserving": 0.4}
STAYS = {"simulator": 0.67, "sample": 0.62, "argmax": 0.95, "paper": 0.8, "conserving": 0.7}
DUPLICATION = {"simulator": 0.01, "sample": 0.12, "argmax": 0.0, "paper": 0.09, "conserving": 0.02}


def record(decoder: str, measure: str, value: float) -> dict[str, Any]:
    return {"decoder": decoder, "measure": measure, "value": value, "low": value - 0.01, "high": value + 0.02, "n": 100}


def accuracy() -> list[dict[str, Any]]:
    return [
        record(decoder, f"{measure} · context {context} · {part}", 1 - value if measure == "token error" else value)
        for decoder, value in EXACT.items()
        for measure in ("exact", "plausible", "token error")
        for context in (1, 20)
        for part in ("all", "with creatures", "without creatures")
    ]  # fmt: skip


def hallucination(steps: int = 4) -> list[dict[str, Any]]:
    found = []
    for decoder in STAYS:
        found += [record(decoder, "stay rate", STAYS[decoder]), record(decoder, "duplication", DUPLICATION[decoder])]
        for step in range(1, steps + 1):
            found.append(record(decoder, f"duplication · step {step}", DUPLICATION[decoder] * step))
    return found


def evaluation(mean: float) -> dict[str, Any]:
    return {
        "environment": "creatures", "iterations": 3, "interactions": 144, "episodes": 50, "return": mean,
        "return_interval": [mean - 0.5, mean + 0.5], "random_return": 0.25, "length": 31.5, "return_percent": 40.0,
        "score": 12.5, "success_rates": {"eat_cow": 0.75, "see_<b>zombie</b>": 0.125},
    }  # fmt: skip


def write_measures(run: Path, what: str, records: list[dict[str, Any]]) -> None:
    (run / "measures").mkdir(exist_ok=True)
    (run / "measures" / f"{what}.json").write_text(json.dumps(records))


def write_metrics(run: Path, lift: float = 0.0) -> None:
    """Three iterations, the third with imagination."""
    lines = [
        {"iteration": index, "interactions": 48 * index, "return": index + lift, "return_percent": 10 * index + lift,
         "return_50k": 0.5 * index + lift, "return_percent_50k": 5.25 * index + lift, "running_return": 0.25,
         "score": 5.0 * index, "codes": 5, "world_model/token_loss": 2.0 / index,
         "seconds": {"play": 1.0, "tokenizer": 0.5, "world model": 2.0} | ({"imagination": 1.5} if index > 2 else {})}
        for index in (1, 2, 3)
    ]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def another(
    run: Path, folder: Path, lift: float = 0.0, preset: str | None = None, seed: int = 0, **changed: Any
) -> Path:
    """A copy of the run with another seed or other settings."""
    shutil.copytree(run, folder)
    saved = json.loads((folder / "config.json").read_text())
    saved |= {"seed": seed, "preset": preset or saved["preset"], "config": saved["config"] | changed}
    (folder / "config.json").write_text(json.dumps(saved))
    write_metrics(folder, lift)
    return folder
