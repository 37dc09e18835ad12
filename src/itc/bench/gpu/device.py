"""Devices to compile for, each described by a file of numbers."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "devices"


class BadRequest(ValueError):
    """What is asked for does not exist, or does not fit."""


class UnknownDevice(BadRequest):
    """There is no description of a device of this name."""


@dataclass(frozen=True)
class Device:
    """A GPU in numbers."""

    name: str  # of its file
    description: Mapping[str, Any]

    @property
    def memory(self) -> int:
        """Bytes."""
        return self.description["device"]["device_memory_size"]

    @property
    def bandwidth(self) -> float:
        """Of the memory, in bytes per second."""
        return float(self.description["device"]["memory_bandwidth"])

    @property
    def link_bandwidth(self) -> float:
        """To the other devices of the same machine, in bytes per second and direction."""
        return float(self.description["link_bandwidth"])

    def peak(self, precision: str) -> float:
        """Additions and multiplications per second, in matrix products of this precision."""
        return self.description["peak_tflops"][precision] * 1e12

    @property
    def target_config(self) -> str:
        """What XLA is told about it: the text of a `stream_executor.GpuTargetConfigProto`."""
        of = self.description
        fields = {
            "gpu_device_info": of["device"],
            "platform_name": of["platform"],
            "dnn_version_info": of["dnn"],
            "device_description_str": of["name"],
        }
        return _text(fields)


def _text(fields: Mapping[str, Any]) -> str:
    """A protobuf as text."""
    lines = []
    for name, value in fields.items():
        if isinstance(value, Mapping):
            lines.append(f"{name} {{ {_text(value)} }}")
        else:
            lines.append(f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}")
    return " ".join(lines)


def known_devices() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find_device(name: str) -> Device:
    if name not in known_devices():
        raise UnknownDevice(f"there is no description of a device {name!r}; known: {', '.join(known_devices())}")
    return Device(name, tomllib.loads((FOLDER / f"{name}.toml").read_text()))
