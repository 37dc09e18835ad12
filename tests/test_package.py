"""What people install: its name, what it needs, what is in it, and that it decodes where nothing else is."""

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from importlib import metadata, util
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import itc
from fresh_environment import FreshEnvironment
from itc.extras import DISTRIBUTION, TRAIN, MissingExtra

ROOT = Path(__file__).parent.parent
RELATIVE = re.compile(r"\]\((?![a-z]+://)[^)]*\)")


def build(project: Path, out: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), *targets]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution, as `make dist` builds them."""
    out = tmp_path_factory.mktemp("dist")
    build(ROOT, out)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def described(built):
    """The wheel's metadata."""
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        return message_from_bytes(wheel.read(name))


def test_the_wheel_holds_the_whole_package(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("itc/")}
    files = (path for path in (ROOT / "src/itc").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {
        "itc/py.typed",
        "itc/evaluate/published.json",
        "itc/envs/listing.json",
        "itc/viewer/report/style.css",
    } <= names


def test_the_wheel_says_what_it_is(described):
    assert (described["Name"], described["Version"]) == ("itc-world-models", itc.__version__)
    assert described["License-Expression"] == "MIT"
    assert described["Author"] == "The ITC contributors"
    assert described["Description-Content-Type"] == "text/markdown"


def test_the_version_is_the_same_wherever_it_is_written():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == itc.__version__
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == itc.__version__


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no workflow")
def test_the_public_workflow_runs_the_gate_and_builds_the_site_with_all_history():
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["check"]["steps"]
    assert {".ci/run", "make docs"} <= {step.get("run") for step in steps}
    assert steps[0]["with"]["fetch-depth"] == 0


def test_the_decoder_needs_three_packages(described):
    required = [Requirement(text) for text in described.get_all("Requires-Dist")]
    assert {each.name for each in required if each.marker is None} == {"numpy", "scipy", "jaxtyping"}
    assert {"jax", "torch", "cuda", "train", "atari", "dev"} <= set(described.get_all("Provides-Extra"))


def test_the_page_on_an_index_has_no_links_that_lead_nowhere(described):
    page = described.get_payload(decode=True).decode()
    assert RELATIVE.search((ROOT / "README.md").read_text())
    assert not RELATIVE.search(page)
    assert "## In your own model" in page
    assert "The tutorial goes on from here" in page


def test_links_of_the_page_lead_to_the_repository_once_it_has_an_address():
    spec = util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "![a picture](docs/a.png) [words](docs/b.md#c) [elsewhere](https://example.org/x)"
    assert module.on_index(text, None) == " words [elsewhere](https://example.org/x)"
    there = "https://example.org/itc"
    assert module.on_index(text, f"{there}/") == (
        f"![a picture]({there}/raw/HEAD/docs/a.png) [words]({there}/blob/HEAD/docs/b.md#c) "
        "[elsewhere](https://example.org/x)"
    )


def test_the_source_distribution_builds_the_same_wheel(built, tmp_path):
    wheel, source = built
    with tarfile.open(source) as packed:
        packed.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    for part in ("README.md", "LICENSE", "constraints.txt", "tests/conftest.py", "docs/decoders.md", "examples"):
        assert (project / part).exists(), part
    build(project, tmp_path / "dist", "--target", "wheel")
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


def test_everything_imported_is_asked_for(described):
    """By the package itself or by an extra; what a test environment happens to hold proves nothing."""
    asked = {canonicalize_name(Requirement(text).name) for text in described.get_all("Requires-Dist")}
    distributions = metadata.packages_distributions()
    for path in (ROOT / "src/itc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for name in {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"itc"}:
                providers = {canonicalize_name(provider) for provider in distributions.get(name, [name])}
                assert providers & asked, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("missing", TRAIN)
def test_loading_a_run_names_what_is_missing_first(missing, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=rf"itc.load needs {missing}: pip install 'itc-world-models\[train\]'"):
        itc.load(tmp_path / "no run at all")


def test_nothing_suggests_installing_a_project_that_is_not_ours():
    """`itc` on the package index is somebody else's."""
    wrong = re.compile(r"""(pip3? install|uv add) [^\n]*?(?<![\w./-])itc(?![\w-])|['"`]itc\[""")
    for name, is_wrong in (("itc", True), (DISTRIBUTION, False)):
        for words in (f"pip install -U {name}", f"pip install '{name}'", f"the extra `{name}[train]`"):
            assert bool(wrong.search(words)) == is_wrong, words
    folders = [path for name in ("src", "docs", "tests", "examples") for path in (ROOT / name).rglob("*")]
    for path in [*folders, *ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / "Makefile", ROOT / "constraints.txt"]:
        if path.suffix in {".py", ".md", ".toml", ".txt", ".js", ".json", ""} and path.is_file():
            found = wrong.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}"


DECODE = """
import sys, importlib.metadata, itc
{arrays}
for config in itc.PRESETS.values():
    decoded = itc.decode(logits, previous, grid=(3, 3), config=config, key=key)
    assert type(decoded.tokens) is type(previous) and decoded.tokens.shape == (2, 9), decoded
print(itc.__file__, importlib.metadata.version("itc-world-models"))
for name in {absent}:
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    sys.exit(f"{{name}} is there")
try:
    itc.load("run")
except ImportError as missing:
    print(missing)
"""
NUMPY = """
import numpy as np
logits, previous, key = np.zeros((2, 9, 5)), np.zeros((2, 9), int), np.random.default_rng(0)
"""
TORCH = """
import torch
logits, previous, key = torch.zeros(2, 9, 5), torch.zeros(2, 9, dtype=torch.long), torch.Generator()
"""
WITHOUT_TRAIN = f"{', '.join(TRAIN)}: pip install '{DISTRIBUTION}[train]'"


@pytest.mark.parametrize(("extra", "arrays", "absent"), [
    ("", NUMPY, ["jax", "torch", "tyro"]),
    ("torch", TORCH, ["jax", "tyro"]),
])  # fmt: skip
def test_the_wheel_decodes_where_nothing_else_is_installed(built, tmp_path, extra, arrays, absent):
    environment = FreshEnvironment(tmp_path / "fresh")
    environment.install(built[0], extra)
    finished = environment.run("python", "-W", "error", "-c", DECODE.format(arrays=arrays, absent=absent))
    assert finished.returncode == 0, finished.stderr
    assert f"{environment.packages}/itc/__init__.py {itc.__version__}" in finished.stdout
    assert f"itc.load needs {WITHOUT_TRAIN}" in finished.stdout
    finished = environment.run("itc", "--help")
    assert (finished.returncode, finished.stderr) == (1, f"itc: the command line needs {WITHOUT_TRAIN}\n")


@pytest.mark.slow
def test_the_command_line_names_other_extras_before_anything_is_written(built, tmp_path):
    """With `train` and nothing else, as most people will have it."""
    environment = FreshEnvironment(tmp_path / "fresh")
    environment.install(built[0], "train")
    before = set(environment.bin.iterdir())
    for command, missing, extra in (
        ("bench decode --json new.json", "ott, torch", "dev"),
        ("bench atari --json new.json", "ale_py", "atari"),
        ("train atari/pong/quick --run new", "ale_py", "atari"),
        ("sweep atari/pong/quick --train --grid seed=0,1 --out new", "ale_py", "atari"),
        ("reproduce atari --here --out new", "ale_py", "atari"),
        ("world-model atari/pong --run new", "ale_py", "atari"),
        ("train creatures/quick --run new --log wandb", "wandb", "wandb"),
        ("sweep creatures/quick --train --grid log=wandb --out new", "wandb", "wandb"),
        ("sweep creatures/quick --train --grid seed=0,1 --out new --on ray", "ray", "ray"),
    ):
        finished = environment.run("itc", *command.split())
        assert finished.returncode == 1, command
        assert finished.stderr.endswith(f"needs {missing}: pip install '{DISTRIBUTION}[{extra}]'\n"), finished.stderr
        assert set(environment.bin.iterdir()) == before, command
    assert environment.run("itc", "presets").returncode == 0
    assert environment.run("itc", "demo", "--steps", "20").returncode == 0
