"""Where the time of a test run goes: `pytest --times` reports the slowest tests, and the sum by folder.

Processor seconds are those of a test's own process and of the programs it started and waited for. They are what to
compare: seconds on the clock depend on what else the machine does, and two workers share its cores.
"""

import json
import os
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import pytest

KEPT = Path(__file__).parent.parent / "results" / "test_times.json"
SLOWEST = 20
BEGAN = pytest.StashKey[float]()


@dataclass
class Spent:
    """Time of one test, or the sum over several."""

    tests: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    def add(self, other: "Spent") -> None:
        self.tests += other.tests
        self.seconds += other.seconds
        self.processor += other.processor


def processor_seconds() -> float:
    return sum(os.times()[:4])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="report the slowest tests and the sum of time by folder")
    parser.addoption(
        "--add-times", metavar="FILE", type=Path, help="the same, with the tests of earlier runs in the file"
    )
    parser.addoption("--keep-times", metavar="NAME", help=f"keep the sums in results/{KEPT.name} under this name")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")  # workers send their reports to the one who started them
    options = config.option
    if (options.times or options.keep_times or options.add_times) and not is_worker:
        config.pluginmanager.register(Times(options.keep_times, options.add_times))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN] = processor_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> None:
    """The last report of a test carries what all of it took."""
    if call.when == "teardown":
        item.user_properties.append(("processor", processor_seconds() - item.stash[BEGAN]))


class Times:
    """Adds up reports, wherever their tests ran."""

    def __init__(self, name: str | None, file: Path | None):
        self.name, self.file = name, file
        self.of_tests: dict[str, Spent] = defaultdict(Spent)
        if file and file.exists():
            self.of_tests |= {test: Spent(**spent) for test, spent in json.loads(file.read_text()).items()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        processor = dict(report.user_properties).get("processor", 0.0)
        ended = report.when == "teardown"
        self.of_tests[report.nodeid].add(Spent(int(ended), report.duration, processor if ended else 0.0))

    def by_folder(self) -> dict[str, Spent]:
        sums: dict[str, Spent] = defaultdict(Spent)
        for test, spent in self.of_tests.items():
            sums[str(PurePosixPath(test.split("::")[0]).parent)].add(spent)
        return dict(sorted(sums.items()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        say = terminalreporter.write_line
        say(f"\nthe slowest {SLOWEST} tests: seconds, processor seconds")
        slowest = sorted(self.of_tests.items(), key=lambda item: -item[1].seconds)[:SLOWEST]
        for test, spent in slowest:
            say(f"{spent.seconds:7.1f} {spent.processor:7.1f}  {test}")
        say("\nby folder: seconds, processor seconds, tests")
        sums, total = self.by_folder(), Spent()
        for spent in sums.values():
            total.add(spent)
        for folder, spent in (sums | {"in all": total}).items():
            say(f"{spent.seconds:7.1f} {spent.processor:7.1f} {spent.tests:5d}  {folder}")
        if self.file:
            self.file.parent.mkdir(exist_ok=True)
            self.file.write_text(json.dumps({test: asdict(spent) for test, spent in self.of_tests.items()}))
        if self.name:
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            kept[self.name] = {
                folder: {"tests": spent.tests, "processor_seconds": round(spent.processor, 1)}
                for folder, spent in sums.items()
            }
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
