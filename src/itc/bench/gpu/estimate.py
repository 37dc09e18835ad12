"""From counts to seconds: the largest of what launching, arithmetic and memory traffic take, and what is exchanged."""

from dataclasses import dataclass

from itc.bench.gpu.count import Counts
from itc.bench.gpu.device import Device

LAUNCH = 3e-6  # seconds that a kernel takes to launch, 2 to 5 µs
LAUNCH_IN_GRAPH = 1e-6  # the same where XLA records stretches of kernels as CUDA graphs
LATENCY = 20e-6  # seconds that a collective among the GPUs of one machine takes, however little is exchanged
SHARE_OF_PEAK = 0.3  # of the device's arithmetic that matrix products of this size reach
# How matrix products are computed: JAX's default on a GPU is TF32.
PRECISIONS = {None: "tf32", "default": "tf32", "tf32": "tf32", "highest": "float32", "float32": "float32"}
PRECISIONS |= {"bfloat16": "bfloat16"}
HOW = (
    f"launches × {LAUNCH * 1e6:g} µs (or {LAUNCH_IN_GRAPH * 1e6:g} µs in CUDA graphs), FLOP at {SHARE_OF_PEAK:.0%} of "
    "the peak, bytes at the memory's bandwidth; of these the largest, for each program"
)
HOW_OF_SEVERAL = (
    f"{HOW}, of one device's part; and to that, for each collective, {LATENCY * 1e6:g} µs and the bytes that a device "
    "sends, around a ring, at the link's bandwidth; nothing is exchanged while something is computed"
)


@dataclass(frozen=True)
class Seconds:
    """What one run of a program takes, by each of the three, and to exchange what devices exchange."""

    launching: float
    launching_in_graphs: float
    arithmetic: float
    memory: float
    exchanging: float = 0.0  # with other devices

    @property
    def total(self) -> float:
        return max(self.launching, self.arithmetic, self.memory) + self.exchanging

    @property
    def total_in_graphs(self) -> float:
        return max(self.launching_in_graphs, self.arithmetic, self.memory) + self.exchanging


def estimate(counts: Counts, device: Device, precision: str | None) -> Seconds:
    return Seconds(
        launching=counts.launches * LAUNCH,
        launching_in_graphs=counts.launches * LAUNCH_IN_GRAPH,
        arithmetic=counts.flop / (SHARE_OF_PEAK * device.peak(PRECISIONS[precision])),
        memory=counts.bytes / device.bandwidth,
        exchanging=sum((one.times * (LATENCY + one.sent / device.link_bandwidth) for one in counts.collectives), 0.0),
    )
