"""The page of the API reference, made from `itc.__all__` and the docstrings: they are the only source."""

import dataclasses
import inspect
import re
import textwrap
from typing import Any

import itc
from itc.train.runs import Run

FIRST = ("decode", "load")  # what most readers look for; the others follow in the order of `itc.__all__`
SECTIONS = ("Args", "Returns", "Raises")
FIELD = re.compile(r"^    (\w+): (.+?)(?: = (.+?))?(?:  # (.+))?$")
CODE = " " * 12  # in a docstring: further in than the lines of an argument
INTRODUCTION = """# API

What `import itc` offers. The page is made from the docstrings.
"""


def api_reference() -> str:
    """All public names, and what `itc.load` returns."""
    functions = [name for name in itc.__all__ if inspect.isfunction(getattr(itc, name))]
    functions.sort(key=lambda name: name not in FIRST)
    classes = [name for name in itc.__all__ if inspect.isclass(getattr(itc, name))]
    parts = [INTRODUCTION, *(_function(f"itc.{name}", getattr(itc, name)) for name in functions)]
    parts += [_class(f"itc.{name}", getattr(itc, name)) for name in classes]
    parts += [_members("A run", Run), _presets()]
    return "\n".join(parts)


def _function(name: str, function: Any) -> str:
    """The signature as it stands in the source: there, types have their short names."""
    source = textwrap.dedent(inspect.getsource(function))
    signature = source[source.index(f"def {function.__name__}(") : source.index(':\n    """')]
    signature = re.sub(r'(: |-> )"([^"]+)"', r"\1\2", signature)  # quotes are about the order of imports
    shown = signature.replace(f"def {function.__name__}", name, 1)
    return f"## {name}\n\n```text\n{shown}\n```\n\n{_docstring(function)}\n"


def _class(name: str, kind: type) -> str:
    rows = _fields(kind)
    default = any(row[2] for row in rows)
    head = ["field", "type", *(["default"] * default), "meaning"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for field, kind_of, value, comment in rows:
        shown = [f"`{field}`", f"`{kind_of}`", *([f"`{value}`"] * default), comment]
        lines.append(f"| {' | '.join(shown)} |")
    return f"## {name}\n\n{_docstring(kind)}\n\n" + "\n".join(lines) + "\n"


def _fields(kind: type) -> list[tuple[str, str, str, str]]:
    """Name, type, default and comment of each field, which may also stand in the lines before it."""
    rows, before = [], []
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else kind._fields
    for line in inspect.getsource(kind).splitlines():
        found = FIELD.match(line)
        if found and found[1] in names:
            rows.append((found[1], found[2], found[3] or "", found[4] or " ".join(before)))
            before = []
        elif line.startswith("    # "):
            before.append(line.removeprefix("    # "))
        elif not line.strip():
            before = []
    return rows


def _members(title: str, kind: type) -> str:
    """What a value of this class can do."""
    parts = [f"## {title}", "", f"`itc.load` returns a `{kind.__name__}`. {_docstring(kind)}", ""]
    for name, member in vars(kind).items():
        if name.startswith("_") or not (isinstance(member, property) or inspect.isfunction(member)):
            continue
        function = member.fget if isinstance(member, property) else member
        if function is None:
            continue
        said = " ".join((inspect.getdoc(function) or "").split())
        names = list(inspect.signature(function).parameters)[1:]
        arguments = "" if isinstance(member, property) else f"({', '.join(names)})"
        parts.append(f"- `run.{name}{arguments}`" + (f": {said}" if said else ""))
    return "\n".join([*parts, ""])


def _presets() -> str:
    names = ", ".join(f"`{name}`" for name in itc.PRESETS)
    return f"## itc.PRESETS\n\nDecoders by name: {names}. [All their values](decoders.md#presets).\n"


def _docstring(of: Any) -> str:
    """Markdown: paragraphs, and lists for arguments."""
    found = []
    for line in (inspect.getdoc(of) or "").splitlines():
        section = line.removesuffix(":")
        found.append(f"\n**{section}**\n" if section in SECTIONS and line.endswith(":") else line)
    paragraphs = re.split(r"\n\n+", "\n".join(found))
    return "\n\n".join(_indented(part) if part.startswith("    ") else part for part in paragraphs if part.strip())


def _indented(part: str) -> str:
    """Arguments as a list; what is indented further than their continuations is code."""
    if part.startswith(CODE):
        return f"    ```python\n{textwrap.indent(textwrap.dedent(part), '    ')}\n    ```"
    lines = []
    for line in textwrap.dedent(part).splitlines():
        name, colon, rest = line.partition(": ")
        lines.append(f"- `{name}`: {rest}" if colon and name.isidentifier() else line)
    return "\n".join(lines)
