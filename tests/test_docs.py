"""README and docs: the code runs, the tables are those of the measured files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = [
    (name, block)
    for name in ("README.md", "docs/decoders.md")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(BLOCKS)])
def test_code_in_the_docs_runs(name, block):
    exec(compile(block, name, "exec"), {})


def test_the_docs_have_code():
    assert len(BLOCKS) >= 3


def test_tables_are_current():
    finished = subprocess.run(
        [sys.executable, str(ROOT / "docs/write_tables.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr


def test_links_lead_somewhere():
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
