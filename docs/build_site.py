"""Build the site from docs/ by Zensical: `python docs/build_site.py [FOLDER]`. It needs no network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from api_reference import api_reference

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
API = "api.md"  # made here
LINK = re.compile(r"(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s]+)\)")
README, READ_ME = "README.md", "readme.md"  # a page like the others; the first one is docs/index.md


def build(out: Path) -> Path:
    """Pages in out/docs, the site in out/site; returns the latter. Any warning of Zensical's ends it."""
    if (out / "docs").resolve() == DOCS.resolve():
        sys.exit(f"{out} holds the pages that the site is made from; name another folder")
    shutil.rmtree(out / "docs", ignore_errors=True)
    shutil.rmtree(out / "site", ignore_errors=True)
    (out / "docs").mkdir(parents=True)
    for file in sorted(DOCS.iterdir()):
        if file.suffix == ".md":
            text = on_site(file.read_text(encoding="utf-8"), out / "docs")
            (out / "docs" / file.name).write_text(text, encoding="utf-8")
        elif file.suffix in (".png", ".svg", ".gif", ".css", ".json"):
            shutil.copy2(file, out / "docs" / file.name)
    read_me = on_site(from_docs((ROOT / README).read_text(encoding="utf-8")), out / "docs")
    (out / "docs" / READ_ME).write_text(read_me, encoding="utf-8")
    (out / "docs" / API).write_text(api_reference(), encoding="utf-8")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": "docs", "site_dir": "site", "nav": present(settings["nav"], out / "docs")}
    (out / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", "mkdocs.yml"]
    subprocess.run(command, cwd=out, check=True)
    return out / "site"


def on_site(text: str, pages: Path) -> str:
    """Links that lead out of docs/: files come along as they are, of folders the words remain."""

    def replaced(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if not target.startswith("../"):
            return link[0]
        path, _, anchor = target.removeprefix("../").partition("#")
        if path == README:
            return f"{picture}[{words}]({READ_ME}{'#' * bool(anchor)}{anchor})"
        if path.startswith("docs/"):
            return f"{picture}[{words}]({path.removeprefix('docs/')}{'#' * bool(anchor)}{anchor})"
        if not (ROOT / path).is_file():
            return words
        copy = pages / "files" / (f"{path}.txt" if path.endswith((".py", ".md")) else path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, copy)
        return f"{picture}[{words}]({copy.relative_to(pages).as_posix()})"

    return LINK.sub(replaced, text)


def from_docs(text: str) -> str:
    """The README's links as if it stood in docs/."""
    return LINK.sub(lambda link: link[0] if "://" in link[3] else f"{link[1]}[{link[2]}](../{link[3]})", text)


def present(nav: list[dict[str, Any]], pages: Path) -> list[dict[str, Any]]:
    """The navigation without pages that are not there, and without sections of which nothing is left."""
    found = []
    for entry in nav:
        for title, leads_to in entry.items():
            if isinstance(leads_to, list):
                found += [{title: inside}] if (inside := present(leads_to, pages)) else []
            elif (pages / leads_to).is_file():
                found.append(entry)
    return found


if __name__ == "__main__":
    built = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build")
    print(f"site: {built / 'index.html'}")
