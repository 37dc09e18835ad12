"""What several GPUs exchange, read from handwritten programs, and what that makes of a preset's estimate."""

from contextlib import nullcontext

import jax
import numpy as np
import pytest

from itc.bench.gpu import several
from itc.bench.gpu.collectives import Collective
from itc.bench.gpu.compiling import Compiled, Compiler
from itc.bench.gpu.count import Counts, count
from itc.bench.gpu.device import BadRequest, find_device
from itc.bench.gpu.estimate import LATENCY, LAUNCH, estimate
from itc.extras import MissingExtra
from itc.presets import find

# 25 updates: in each, one all-reduce of two arrays, a reduce-scatter, and a loop of 20 steps with a permutation; before
# them an all-gather among groups of four, and one among a device and itself.
PROGRAM = """
HloModule jit_f, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%scatter (p.0: f32[16,4]) -> f32[2,4] {
  %p.0 = f32[16,4]{1,0} parameter(0)
  ROOT %rs = f32[2,4]{1,0} reduce-scatter(%p.0), replica_groups=mesh['axis_0'=8] {'axis_0'}, dimensions={0}, to_apply=%add
}

%step (p.1: (s32[], f32[2,4])) -> (s32[], f32[2,4]) {
  %p.1 = (s32[], f32[2,4]{1,0}) parameter(0)
  %n.1 = s32[] get-tuple-element(%p.1), index=0
  %g.1 = f32[2,4]{1,0} get-tuple-element(%p.1), index=1
  %cp.1 = (f32[2,4]{1,0}, f32[2,4]{1,0}) collective-permute-start(%g.1), source_target_pairs={{0,1},{1,2}}
  %cd.1 = f32[2,4]{1,0} collective-permute-done(%cp.1)
  ROOT %t.1 = (s32[], f32[2,4]{1,0}) tuple(%n.1, %cd.1)
}

%update (p.2: (s32[], f32[2,4])) -> (s32[], f32[2,4]) {
  %p.2 = (s32[], f32[2,4]{1,0}) parameter(0)
  %while.2 = (s32[], f32[2,4]{1,0}) while(%p.2), condition=%always, body=%step, backend_config={"known_trip_count":{"n":"20"}}
  %n.2 = s32[] get-tuple-element(%while.2), index=0
  %g.2 = f32[2,4]{1,0} get-tuple-element(%while.2), index=1
  %ar.2 = (f32[2,4]{1,0}, s32[]) all-reduce-start(%g.2, %n.2), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
  %ad.2 = (f32[2,4]{1,0}, s32[]) all-reduce-done(%ar.2)
  %r.2 = f32[2,4]{1,0} get-tuple-element(%ad.2), index=0
  %whole.2 = f32[16,4]{1,0} broadcast(%r.2), dimensions={0,1}
  %as.2 = ((f32[16,4]{1,0}), f32[2,4]{1,0}) async-start(%whole.2), calls=%scatter
  %d.2 = f32[2,4]{1,0} async-done(%as.2)
  ROOT %t.2 = (s32[], f32[2,4]{1,0}) tuple(%n.2, %d.2)
}

%always (p.3: (s32[], f32[2,4])) -> pred[] {
  %p.3 = (s32[], f32[2,4]{1,0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (x: f32[2,4]) -> f32[2,4] {
  %x = f32[2,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %ag = (f32[2,4]{1,0}, f32[8,4]{1,0}) all-gather-start(%x), replica_groups=[2,4]<=[8], dimensions={0}
  %ad = f32[8,4]{1,0} all-gather-done(%ag)
  %alone = f32[2,4]{1,0} all-reduce(%x), replica_groups=[8,1]<=[8], to_apply=%add
  %t = (s32[], f32[2,4]{1,0}) tuple(%zero, %alone)
  %while = (s32[], f32[2,4]{1,0}) while(%t), condition=%always, body=%update, backend_config={"known_trip_count":{"n":"25"}}
  ROOT %g = f32[2,4]{1,0} get-tuple-element(%while), index=1
}
"""  # noqa: E501


def test_collectives_are_found_wherever_they_are_with_how_often_they_run():
    found = {one.kind: one for one in count(PROGRAM).collectives}
    assert found == {
        "all-gather": Collective("all-gather", 4, 2 * 4 * 4),
        "collective-permute": Collective("collective-permute", 8, 2 * 4 * 4, times=500),
        "all-reduce": Collective("all-reduce", 8, 2 * 4 * 4 + 4, times=25),
        "reduce-scatter": Collective("reduce-scatter", 8, 16 * 4 * 4, times=25),
    }
    # One launch each; waiting for it is none. The broadcast is one in each update; the last is what exchanges nothing.
    assert count(PROGRAM).launches == 1 + 25 * (20 + 1 + 1 + 1) + 1


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("all-reduce", 2 * 7 / 8 * 800),
        ("reduce-scatter", 7 / 8 * 800),
        ("all-to-all", 7 / 8 * 800),
        ("all-gather", 7 * 800),
        ("collective-permute", 800),
    ],
)
def test_a_device_sends_around_a_ring(kind, sent):
    assert Collective(kind, 8, 800).sent == pytest.approx(sent)


def test_what_is_exchanged_comes_on_top_of_the_largest():
    device, reduced = find_device("a100-40gb"), Collective("all-reduce", 8, 240_000_000, times=25)
    counts = Counts(1000, 1.0, 1.0, collectives=(reduced,))
    assert estimate(counts, device, None).exchanging == pytest.approx(25 * (LATENCY + 2 * 7 / 8 * 240e6 / 300e9))
    assert estimate(counts, device, None).total == pytest.approx(1000 * LAUNCH + 25 * (LATENCY + 1.4e-3))
    assert estimate(Counts(1000, 1.0, 1.0), device, None).exchanging == 0


def test_minibatches_are_made_larger_where_they_cannot_be_divided_and_that_is_said():
    paper = find("craftax-classic/itc-paper").config
    assert several._divisible("paper", paper, 2) == (paper, "")
    fitting, words = several._divisible("paper", paper, 8)
    assert (fitting.ppo.minibatches, words) == (6, " --ppo.minibatches 6")
    with pytest.raises(BadRequest, match=r"collect.num_envs 48 .* 5 devices; --devices 1, 2, 4 or 8 would do$"):
        several._divisible("paper", paper, 5)
    with pytest.raises(BadRequest, match=r"^devices must be in 1..8, the GPUs of one machine, got 9$"):
        several._divisible("paper", paper, 9)
    with pytest.raises(
        BadRequest, match=r"^devices must be 1 for atari/pong/itc-paper: this compiles divided programs"
    ):
        several._divisible("atari/pong/itc-paper", find("atari/pong/itc-paper").config, 2)


class MadeUpCompiler(Compiler):
    """One device takes 8000 launches for everything; of several, each takes 1000 and one exchange for each update."""

    per_call = 1  # exchanges

    def __init__(self, device, devices=1):
        self.devices, self.mesh = devices, None
        if devices > 1:  # of one CPU: shapes say how they are divided, which is all that is asked here
            self.mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",), (jax.sharding.AxisType.Auto,))

    def compile(self, function, *arguments, precision):
        with precision or nullcontext():
            assert callable(function.trace), "made by jax.jit"
        if self.devices == 1:
            return Compiled(Counts(launches=8000), arguments=10**9, beyond=10**9, seconds=2.0)
        exchanged = Collective("all-reduce", self.devices, 10**6, times=self.per_call)
        return Compiled(Counts(launches=1000, collectives=(exchanged,)), arguments=10**8, beyond=10**8, seconds=2.0)


def test_every_program_says_what_it_exchanges_and_how_much_faster_it_is(monkeypatch):
    monkeypatch.setattr(several, "Compiler", MadeUpCompiler)
    records = {one.name: one for one in several.bench_several_gpus(["craftax-classic/itc-paper"], "a100-40gb", 8)}
    label = "craftax-classic/itc-paper --ppo.minibatches 6 on 8 × a100-40gb: "
    assert records[f"{label}world-model update: collectives"].value == 1
    assert records[f"{label}world-model update: collectives per step"].ok
    speed_up = 8 * 1000 * LAUNCH / (1000 * LAUNCH + LATENCY + 2 * 7 / 8 * 1e6 / 300e9)
    assert records[f"{label}world-model update: speed-up"].value == pytest.approx(speed_up, rel=1e-3)
    whole = records[f"{label}whole run: speed-up"]
    assert (whole.value, whole.target, whole.ok) == (pytest.approx(speed_up, rel=1e-3), ">= 6.5", True)


def test_what_is_exchanged_in_every_step_misses_the_target(monkeypatch):
    monkeypatch.setattr(several, "Compiler", MadeUpCompiler)
    monkeypatch.setattr(MadeUpCompiler, "per_call", 500)
    records = {one.name: one for one in several.bench_several_gpus(["creatures/quick"], "a100-40gb", 2)}
    label = "creatures/quick on 2 × a100-40gb: "
    assert records[f"{label}world-model update: collectives per step"].ok is False
    assert records[f"{label}world-model update: collectives"].value == 20


def test_a_missing_environment_is_one_sentence(monkeypatch):
    monkeypatch.setattr("itc.extras._is_there", lambda package: "cuda" not in package)
    with pytest.raises(MissingExtra, match=r"itc bench gpu needs jax_plugins\.xla_cuda12: .* in an environment of its"):
        next(several.bench_several_gpus())
