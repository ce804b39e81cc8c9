"""U-Nets of Stable Diffusion, and its decoder, have the parameters and the work that others counted."""

from dataclasses import replace

import pytest

from mlsys.workloads import zoo
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

# Parameters of the weights that are published: of version 1.4 and its decoder as Nota-NetsPresso/BK-SDM, issue 53,
# counts them (its decoder leaves out the 20 of the first 1 × 1), of version 2 as buddy-mlir's example, and of SDXL as
# training logs of diffusers print them.
PARAMETERS = {
    "sd_v1_unet": 859_520_964, "sd_v2_unet": 865_910_724, "sdxl_unet": 2_567_463_684, "sd_decoder": 49_490_179 + 20,
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_of_the_weights(name: str) -> None:
    assert zoo.network(name, batch=1).parameters.m_as("param") == PARAMETERS[name]


# The same issue, by a counter that sees layers (and few operations for each number that is normalised), not the
# products of attention.
@pytest.mark.parametrize(("name", "macs"), [("sd_v1_unet", 338_749_194_240), ("sd_decoder", 1_240_079_532_032)])
def test_work_of_the_layers_is_that_of_a_counter(name: str, macs: int) -> None:
    network = zoo.network(name, batch=1, image=64)
    layers = sum(op.operations.m_as("FLOP") for op in network.operators if op.kind != "attention") / 2
    assert layers == pytest.approx(macs, rel=5e-4)


def test_statistics_of_whole_pictures_ride_along_with_nothing() -> None:
    """However it is compiled, a group normalisation reads a picture twice and writes it: two in each of 22 residual
    blocks of version 1, one in each of 16 transformers, one at the end; of volumes one behind each convolution but one.
    """
    ends = ("a norm", "b norm", "transformer norm", "last norm")
    for name, norms in (("sd_v1_unet", 22 * 2 + 16 + 1), ("unet3d_kits19", 2 * 6 + 2 * 5)):
        for fused in (True, False):
            network = zoo.network(name, batch=1, precision="fp16", fused=fused)
            whole = [op for op in network.operators if op.kind == "elementwise" and op.name.endswith(ends)]
            assert len(whole) == norms
            assert all(op.data.m_as("byte") == 3 * 2 * op.shape["elements"] for op in whole)


def test_a_sample_of_mlperf_is_twenty_guided_looks_and_one_decoded_picture() -> None:
    row = next(row for row in shipped_rows() if row.model == "SDXL 1.0" and "TPU v5e" in row.device)
    work = interpret(row).work
    eight = float(work["flops"] @ work["count"])
    look, decoder = (zoo.network(name, batch=1).flops.m_as("FLOP") for name in ("sdxl_unet", "sd_decoder"))
    assert eight == pytest.approx(8 * (20 * 2 * look + decoder), rel=0.01)


def test_a_neural_engine_that_nobody_described_is_not_taken_for_the_graphics_beside_it() -> None:
    devices = {row.device for row in shipped_rows() if "diffusion" in row.workload}
    assert "Apple M2 (iPad Pro, ANE)" in devices
    for row in shipped_rows():
        if "diffusion" in row.workload and "A15" in row.device:
            assert interpret(row).twin == "Apple_A15"
        if row.device == "Apple M2 (iPad Pro, ANE)":
            assert interpret(row).twin == "Apple_M2_ANE"
            with pytest.raises(Exception, match="Neural Engine"):
                interpret(replace(row, device="Apple M4 (iPad Pro, ANE)"))


def test_latents_of_any_size_meet_what_was_kept_of_them() -> None:
    """diffusers doubles a picture to the size of the one that it meets, 15 after 8 where 30 was halved twice."""
    work = [zoo.network("sd_v1_unet", batch=1, image=side).flops.m_as("FLOP") for side in (28, 30, 32)]
    assert work == sorted(work)
    assert work[1] / work[2] == pytest.approx((30 / 32) ** 2, rel=0.06)
