"""Counting in a compiled program, on handwritten ones: the environment that compiles for a GPU is not here."""

import pytest

from itc.bench.gpu import report
from itc.bench.gpu.compiling import Compiled, Compiler
from itc.bench.gpu.count import Counts, count
from itc.bench.gpu.device import UnknownDevice, find_device, known_devices
from itc.bench.gpu.estimate import LAUNCH, SHARE_OF_PEAK, estimate
from itc.bench.gpu.hlo import NotHLO
from itc.extras import MissingExtra

# A loop of 20 rounds around one of 3 and a fusion, then one of unknown length, a branch, a call, and a callback.
LOOPS = """
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%fused (param_0: f32[8]) -> f32[8] {
  %param_0 = f32[8]{0} parameter(0)
  ROOT %add.1 = f32[8]{0} add(%param_0, %param_0), metadata={op_name="jit(f)/add"}
}

%inner (p.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p.1 = (s32[], /*index=1*/f32[8]{0}) parameter(0)
  %g.1 = f32[8]{0} get-tuple-element(%p.1), index=1
  %g.0 = s32[] get-tuple-element(%p.1), index=0
  %f.1 = f32[8]{0} fusion(%g.1), kind=kLoop, calls=%fused
  %c.1 = f32[8]{0} copy(%f.1)
  ROOT %t.1 = (s32[], f32[8]{0}) tuple(%g.0, %c.1)
}

%always (p.2: (s32[], f32[8])) -> pred[] {
  %p.2 = (s32[], f32[8]{0}) parameter(0)
  %n.2 = s32[] get-tuple-element(%p.2), index=0
  %k.2 = s32[] constant(7)
  ROOT %lt.2 = pred[] compare(%n.2, %k.2), direction=LT
}

%outer (p.3: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p.3 = (s32[], f32[8]{0}) parameter(0)
  %while.3 = (s32[], f32[8]{0}) while(%p.3), condition=%always, body=%inner, backend_config={"known_trip_count":{"n":"3"},"known_init_step":{"init":"0","step":"1"}}
  %g.3 = f32[8]{0} get-tuple-element(%while.3), index=1
  %n.3 = s32[] get-tuple-element(%while.3), index=0
  %f.3 = f32[8]{0} fusion(%g.3), kind=kLoop, calls=%fused
  ROOT %t.3 = (s32[], f32[8]{0}) tuple(%n.3, %f.3)
}

%long (p.4: f32[8]) -> f32[8] {
  %p.4 = f32[8]{0} parameter(0)
  %a.4 = f32[8]{0} fusion(%p.4), kind=kLoop, calls=%fused
  ROOT %b.4 = f32[8]{0} fusion(%a.4), kind=kLoop, calls=%fused
}

%short (p.5: f32[8]) -> f32[8] {
  ROOT %p.5 = f32[8]{0} parameter(0)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %t = (s32[], f32[8]{0}) tuple(%zero, %x)
  %while.20 = (s32[], f32[8]{0}) while(%t), condition=%always, body=%outer, backend_config={"known_trip_count":{"n":"20"}}
  %while.21 = (s32[], f32[8]{0}) while(%while.20), condition=%always, body=%inner
  %g = f32[8]{0} get-tuple-element(%while.21), index=1
  %n = s32[] get-tuple-element(%while.21), index=0
  %cond = f32[8]{0} conditional(%n, %g, %g), branch_computations={%long, %short}
  %call = f32[8]{0} call(%cond), to_apply=%long
  ROOT %custom = f32[8]{0} custom-call(%call), custom_call_target="xla_ffi_python_gpu_callback", api_version=API_VERSION_TYPED_FFI
}
"""  # noqa: E501
PRODUCTS = """
HloModule jit_g, is_scheduled=true

%product (param_0: f32[4,16], param_1: f32[16,5]) -> f32[4,5] {
  %param_0 = f32[4,16]{1,0} parameter(0)
  %param_1 = f32[16,5]{1,0} parameter(1)
  ROOT %dot = f32[4,5]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%cut (param_0: f32[1000,16], param_1: s32[]) -> f32[4,16] {
  %param_0 = f32[1000,16]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %slice = f32[4,16]{1,0} dynamic-slice(%param_0, %param_1, %zero), dynamic_slice_sizes={4,16}
}

%paste (param_0: f32[1000,16], param_1: f32[4,16], param_2: s32[]) -> f32[1000,16] {
  %param_0 = f32[1000,16]{1,0} parameter(0)
  %param_1 = f32[4,16]{1,0} parameter(1)
  %param_2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %update = f32[1000,16]{1,0} dynamic-update-slice(%param_0, %param_1, %param_2, %zero)
}

ENTRY %main (table: f32[1000,16], w: f32[16,5], at: s32[], x: f32[2,9,8,3], k: f32[3,3,3,6]) -> f32[1000,16] {
  %table = f32[1000,16]{1,0} parameter(0)
  %w = f32[16,5]{1,0} parameter(1)
  %at = s32[] parameter(2)
  %x = f32[2,9,8,3]{3,2,1,0} parameter(3)
  %k = f32[3,3,3,6]{3,2,1,0} parameter(4)
  %rows = f32[4,16]{1,0} fusion(%table, %at), kind=kLoop, calls=%cut
  %fused_product = f32[4,5]{1,0} fusion(%rows, %w), kind=kCustom, calls=%product
  %library = (f32[4,5]{1,0}, s8[4194304]{0}) custom-call(%rows, %w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
  %conv = (f32[2,9,8,6]{3,2,1,0}, u8[0]{0}) custom-call(%x, %k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convForward"
  %y = f32[2,9,8,6]{3,2,1,0} get-tuple-element(%conv), index=0
  %of_weight = (f32[3,3,3,6]{3,2,1,0}, u8[0]{0}) custom-call(%x, %y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convBackwardFilter"
  %of_input = (f32[2,9,8,3]{3,2,1,0}, u8[0]{0}) custom-call(%y, %k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, custom_call_target="__cudnn$convBackwardInput"
  ROOT %result = f32[1000,16]{1,0} fusion(%table, %rows, %at), kind=kLoop, calls=%paste
}
"""  # noqa: E501


def test_launches_in_loops_count_as_often_as_they_run():
    counts = count(LOOPS)
    # 20 × (3 × (fusion, copy) + fusion), one round of the unknown loop (and its condition), the longer branch, the
    # call, the callback.
    assert counts.launches == 20 * (3 * 2 + 1) + (2 + 1) + 2 + 2 + 1
    assert (counts.unknown_loops, counts.branches, counts.callbacks) == (1, 1, 1)


def test_a_loop_of_unknown_length_inside_a_loop_is_one_place():
    inside = LOOPS.replace('{"known_trip_count":{"n":"3"},"known_init_step":{"init":"0","step":"1"}}', "{}")
    assert count(inside).unknown_loops == 2


def test_products_and_convolutions_are_counted_wherever_they_are():
    product = 2 * 4 * 5 * 16
    convolution = 2 * (2 * 9 * 8 * 6) * (3 * 3 * 3)
    counts = count(PRODUCTS)
    assert counts.flop == 2 * product + 3 * convolution
    assert counts.launches == 7


def test_reading_or_writing_some_rows_does_not_move_the_whole_table():
    rows, number, table = 4 * 16 * 4, 4, 1000 * 16 * 4
    assert count(PRODUCTS).bytes < table, "nor does the room count that a library works in"
    without_others = PRODUCTS.split("  %fused_product")[0] + "  ROOT %result" + PRODUCTS.split("  ROOT %result")[-1]
    assert count(without_others).bytes == (rows + number + rows) + (rows + number + rows)


def test_text_that_is_no_program_is_refused():
    with pytest.raises(NotHLO, match="no entry computation"):
        count("module @jit_f { func.func public @main() }")


def test_every_description_is_complete():
    assert {"a100-40gb", "rtx3090"} <= set(known_devices())
    described = [find_device(name) for name in known_devices()]
    fields = {name: set(device.description["device"]) for name, device in zip(known_devices(), described, strict=True)}
    assert len(set(map(frozenset, fields.values()))) == 1, fields
    for device in described:
        assert device.peak("bfloat16") > device.peak("float32") > 0
        assert f"device_memory_size: {device.memory}" in device.target_config
        assert 'platform_name: "CUDA"' in device.target_config
        # Nothing but names, numbers, strings and braces, all closed.
        assert device.target_config.count("{") == device.target_config.count("}") == 3


def test_an_unknown_device_is_named_with_those_that_are_known():
    with pytest.raises(UnknownDevice, match=r"no description of a device 'h9000'; known: a100-40gb, rtx3090"):
        find_device("h9000")


def test_the_largest_of_launching_arithmetic_and_memory_decides():
    device = find_device("a100-40gb")
    launching = estimate(Counts(1000, 1.0, 1.0), device, None)
    assert launching.total == 1000 * LAUNCH > launching.total_in_graphs
    arithmetic = estimate(Counts(1, 1e15, 1.0), device, "highest")
    assert arithmetic.total == arithmetic.total_in_graphs == 1e15 / (SHARE_OF_PEAK * 19.5e12)
    assert estimate(Counts(1, 1e15, 1.0), device, None).total == arithmetic.total / 8, "TF32 is eight times as fast"
    memory = estimate(Counts(1, 1.0, 1e12), device, None)
    assert memory.total == 1e12 / 1.5552e12


class MadeUpCompiler(Compiler):
    """Says the same about every program."""

    beyond = 5 * 10**9

    def __init__(self, device):
        pass

    def compile(self, function, *arguments, precision):
        with precision:
            assert callable(function.trace), "made by jax.jit"
        return Compiled(Counts(launches=1000), arguments=10**9, beyond=self.beyond, seconds=2.0)


@pytest.mark.parametrize(
    ("preset", "programs"),
    [
        (
            "creatures/quick",
            "play, add to replay buffer, PPO on real play, tokenizer growth, world-model update, "
            "one imagined step of 16, model alone, imagination and policy update, 16×8",
        ),
        (
            "atari/pong/quick",
            "choose an action, tokenizer update, without perceptual loss, encode 8192 frames, world-model update, "
            "imagination and policy update, 16×8",
        ),
    ],
)
def test_every_phase_of_both_agents_is_compiled(preset, programs, monkeypatch):
    monkeypatch.setattr(report, "Compiler", MadeUpCompiler)
    found = {record.name: record for record in report.bench_gpu([preset], "rtx3090")}
    names = [name.split(": ")[1] for name in found if name.endswith(": launches")]
    assert ", ".join(names) == programs
    label = f"{preset} on rtx3090: "
    if "encode 8192 frames" in names:
        assert found[f"{label}encode 8192 frames: launches"].value == 1000 * 8192 / 64, "batches of 64, in a loop"
    assert found[f"{label}world-model update: host callbacks"].ok
    assert found[f"{label}whole run: memory"].value >= 5
    run, in_graphs = (found[f"{label}whole run: estimate{way}"].value for way in ("", " in CUDA graphs"))
    assert run == pytest.approx(3 * in_graphs, rel=1e-3), "1 µs in place of 3"


def test_a_preset_that_does_not_fit_says_by_how_much(monkeypatch):
    monkeypatch.setattr(report, "Compiler", MadeUpCompiler)
    monkeypatch.setattr(MadeUpCompiler, "beyond", 50 * 10**9)
    with pytest.raises(
        report.DoesNotFit, match=r"^creatures/quick needs 50\.\d GB, 24\.\d GB more than a rtx3090 has$"
    ):
        list(report.bench_gpu(["creatures/quick"], "rtx3090"))


def test_a_missing_environment_is_one_sentence(monkeypatch):
    monkeypatch.setattr("itc.extras._is_there", lambda package: "cuda" not in package)
    sentence = (
        r"itc bench gpu needs jax_plugins\.xla_cuda12: pip install '.*\[gpu-bench\]', in an environment of its own"
    )
    with pytest.raises(MissingExtra, match=sentence):
        Compiler(find_device("a100-40gb"))


def test_wrong_names_stop_before_anything_is_compiled():
    with pytest.raises(ValueError, match="unknown preset 'minatar/breakout/papre'"):
        next(report.bench_gpu(["minatar/breakout/papre"]))
    with pytest.raises(UnknownDevice, match="h9000"):
        next(report.bench_gpu(["creatures/quick"], "h9000"))
