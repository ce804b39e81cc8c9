"""Convolutions as the kernels of the algorithm that a library takes."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.models.estimate import MATMUL, VECTOR, CaseBatch, Parameters, Work, bound, kernel_times
from mlsys.models.estimate.library import fitted
from mlsys.models.estimate.running import SAVED_ON_GPU
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.evaluate.report import validate
from mlsys_evidence.fit.refit import held_out_predictions
from mlsys_evidence.ingest.operators import sizes_of_convolution
from mlsys_evidence.ingest.reading import number_format
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.cudnn import Convolution
from mlsys_evidence.rows import shipped_rows

FP32 = number_format("fp32")
SHAPE = "N={},C={},H={},W={},K={},R=3,S=3,pad_h=1,pad_w=1,stride_v=1,stride_h=1"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Return one row of each software and format of convolutions on GPUs."""
    by_software = {
        (row.software, row.precision, row.device): row
        for row in shipped_rows()
        if row.workload.startswith("2D convolution") and "GPU" in row.device_class
    }
    return list(by_software.values())


def case(rows: list[Row], words: str, shape: str, precision: str = "", device: str = "") -> Case:
    """Return the case of a shape in the first software whose name has the words."""
    found = (row for row in rows if words in row.software and row.precision.startswith(precision))
    row = next(row for row in found if device in row.device)
    return interpret(replace(row, seq_or_shape=shape))


def multiplications(case: Case) -> float:
    work = case.work
    each = work["m"] * work["n"] * work["k"] * work["batch"] * work["count"]
    return float((each * (work["kind"] == MATMUL)).sum())


@pytest.mark.parametrize(
    ("images", "channels", "size", "filters", "blocks"),
    [(3, 16, 8, 1092, 105), (1, 65, 91, 64, 144), (14, 58, 20, 946, 2520), (2, 145, 8, 280, 18), (36, 44, 7, 12, 18)],
)
def test_a_fused_kernel_has_about_the_blocks_that_cudnn_launches(
    images: int, channels: int, size: int, filters: int, blocks: int
) -> None:
    """NeuSight's profiles of cuDNN 8.9 on an A100 state the grids; cuDNN does not always take the fewest."""
    _, product = Convolution.of(sizes_of_convolution(SHAPE.format(images, channels, size, size, filters))).fused(FP32)
    assert 0.5 * blocks <= product.m * product.n / 128**2 <= blocks


def test_winograd_saves_what_lavin_and_gray_say() -> None:
    """F(2 × 2, 3 × 3) leaves 1 multiplication of 2.25, F(4 × 4, 3 × 3) 1 of 4, where whole squares fit."""
    shape = Convolution.of(sizes_of_convolution(SHAPE.format(4, 64, 32, 32, 96)))
    direct = 4 * 32 * 32 * 64 * 96 * 9
    product = shape.as_product(FP32)
    assert product.m * product.n * product.k == direct
    _, fused = shape.fused(FP32)
    assert fused.m * fused.n * fused.k == pytest.approx(direct / 2.25)
    apart = shape.apart(FP32)[2]
    assert apart.m * apart.n * apart.k * apart.batch == pytest.approx(direct / 4)
    assert (fused.flops, apart.flops) == pytest.approx((2 * direct / 2.25, 2 * direct / 4))


def test_a_named_algorithm_is_the_one_that_runs(rows: list[Row]) -> None:
    shape = SHAPE.format(16, 256, 28, 28, 512)
    named = {"IMPLICIT_PRECOMP_GEMM": 1, "algo WINOGRAD": 2, "WINOGRAD_NONFUSED": 4}
    for name, kernels in named.items():
        row = next(row for row in rows if row.software.endswith(name) and row.precision == "fp32")
        assert interpret(replace(row, seq_or_shape=shape)).work.launches == kernels, name


def test_many_channels_are_transformed_apart_and_matrix_units_transform_nothing(rows: list[Row]) -> None:
    """CuDNN takes four kernels, and a quarter of the multiplications, for this shape on an A100 (NeuSight)."""
    shape = SHAPE.format(64, 1088, 23, 23, 78)
    direct = 64 * 23 * 23 * 1088 * 78 * 9
    assert multiplications(case(rows, "eager", shape)) < 0.35 * direct
    assert multiplications(case(rows, "CUDA 9", shape, "fp16 inputs")) == direct
    strided = shape.replace("stride_v=1,stride_h=1", "stride_v=2,stride_h=2")
    assert multiplications(case(rows, "eager", strided)) == pytest.approx(64 * 12 * 12 * 1088 * 78 * 9)


@pytest.mark.parametrize("device", ["A100", "P100", "T4"])
def test_few_filters_are_not_transformed_apart(rows: list[Row], device: str) -> None:
    """NeuSight's profiles: of 835 layers of 3 × 3 and at most 16 filters on three cards none ran in four parts."""
    row = next(row for row in rows if row.source == "sitar-lab/NeuSight" and device in row.device)
    for images, channels, side, filters in ((30, 331, 113, 13), (19, 233, 62, 8), (36, 44, 7, 12), (64, 900, 30, 16)):
        shape = f"N={images},C={channels},H={side},W={side},K={filters},R=3,S=3,pad_h=1,pad_w=1,stride_v=1,stride_h=1"
        few, many = (interpret(replace(row, seq_or_shape=shape.replace(f"K={filters},", f"K={number},")))
                     for number in (filters, 512))  # fmt: skip
        assert 36 not in few.work["batch"]
        assert many.work.flops > few.work.flops


def test_a_stated_rate_counts_the_sums_as_they_are_written(rows: list[Row]) -> None:
    """16 × 28 × 28 × 512 outputs of 256 × 9 multiply-adds at 29.6 TFLOP/s take a millisecond, whatever ran."""
    shape = SHAPE.format(16, 256, 28, 28, 512)
    row = next(row for row in rows if row.software.endswith("algo WINOGRAD"))
    stated = replace(row, seq_or_shape=shape, metric="achieved throughput", value=29.595009, unit="TFLOP/s")
    assert interpret(stated).seconds == pytest.approx(1e-3, rel=1e-4)


def test_what_blocks_compute_for_nothing_is_no_bound() -> None:
    """A GTX 1080 Ti did this layer in 1,191 µs: under its peak, of F(2 × 2, 3 × 3) without the rim of its blocks."""
    row = next(row for row in shipped_rows() if row.software.endswith("algo WINOGRAD") and "1080" in row.device)
    case = interpret(replace(row, seq_or_shape=SHAPE.format(16, 256, 28, 28, 512), value=1191.0))
    arithmetic, _ = bound(CaseBatch.of([(case.engine, case.work, case.cached)]))
    assert arithmetic[0] < case.seconds


def test_eight_bits_fill_tiles_of_128_filters(rows: list[Row]) -> None:
    """On a TITAN X, 32 filters attain 9 TOP/s, 64 18, 128 39: each takes the time of 128."""
    few, many = (case(rows, "CUDA 8", SHAPE.format(1, 64, 80, 350, filters), "int8") for filters in (32, 128))
    assert multiplications(few) == multiplications(many)
    single = case(rows, "CUDA 8", SHAPE.format(1, 1, 80, 350, 128), "int8")
    assert multiplications(single) == multiplications(case(rows, "CUDA 8", SHAPE.format(1, 4, 80, 350, 128), "int8"))


DEEP = "N=32,C={},H=161,W=700,K={},R=5,S=20,pad_h=0,pad_w=0,stride_v=2,stride_h=2"


def product_of(one: Case, parameters: Parameters | None = None) -> float:
    """Return the seconds that the blocks of a case's longest product take, by default where no feed holds them."""
    stack = CaseBatch.of([(one.engine, one.work, one.cached)])
    times = kernel_times(stack, (parameters or Parameters(reuse=30.0)).vectorised())
    return float(times.working.max())


def test_matrix_units_step_over_32_channels_at_a_time(rows: list[Row]) -> None:
    """Channels that are not there cost as much: a V100 took 3,687 µs for one channel, as it would for 32."""
    one, many = (case(rows, "CUDA 9", DEEP.format(channels, 64), "fp16 inputs") for channels in (1, 32))
    assert multiplications(one) == multiplications(many)
    measured = case(rows, "CUDA 9", DEEP.format(1, 32), "fp16 inputs")
    assert 0.5 < product_of(measured, fitted()[measured.setting]) / 3687e-6 < 2
    vectors = [multiplications(case(rows, "CUDA 9", DEEP.format(channels, 64), "fp32")) for channels in (1, 32)]
    assert vectors[1] == 32 * vectors[0]


def test_filters_that_no_block_is_as_narrow_as_cost_nothing(rows: list[Row]) -> None:
    """NeuSight's profiles name blocks of 32 filters for FP32; kernels of a V100's matrix units have 64 at least."""
    for words, precision, narrow in (("algo IMPLICIT_PRECOMP_GEMM", "fp32", 32), ("CUDA 9", "fp16 inputs", 64)):
        few, full, more = (
            product_of(case(rows, words, DEEP.format(32, filters), precision))
            for filters in (narrow // 2, narrow, 2 * narrow)
        )
        assert few == pytest.approx(full)
        assert more > 1.5 * full


def test_a_block_sums_all_channels_itself(rows: list[Row]) -> None:
    """However few the blocks, none gets another unit's help: a unit's rate is a bound on each of them."""
    one = case(rows, "algo IMPLICIT_PRECOMP_GEMM", "N=1,C=4096,H=8,W=16,K=32,R=1,S=1,pad_h=0,pad_w=0")
    alone = 2 * 128 * 32 * 4096 / (one.engine.matmul / one.engine.units)
    assert product_of(one) >= alone
    free = np.array(one.work.columns)
    free[one.work.FIELDS.index("block_rows")] = 0
    assert product_of(replace(one, work=Work(free))) < alone


def test_a_p100_computes_in_half_what_deepbench_calls_pseudo(rows: list[Row]) -> None:
    """Its sheet has 11.0 TFLOP/s for this layer, of 9.3 in FP32: 150 µs. cuDNN 6 is called with CUDNN_DATA_HALF."""
    shape = "N=16,C=256,H=56,W=56,K=64,R=1,S=1,pad_h=0,pad_w=0,stride_v=1,stride_h=1"
    half, whole = (case(rows, "CUDA 8", shape, precision, "P100") for precision in ("pseudo", "fp32"))
    arithmetic, _ = bound(CaseBatch.of([(half.engine, half.work, half.cached)]))
    assert arithmetic[0] < 150e-6
    assert 0.5 < product_of(half) / product_of(whole) < 1


def test_one_block_of_half_precision_alone_takes_as_long_as_two(rows: list[Row]) -> None:
    """On a P100 sums of 1,024 to 2,048 channels take about 0.23 µs a channel, with 16, 28 and with 98 blocks."""
    layer = "N={},C=512,H=8,W=16,K=128,R=1,S=1,pad_h=0,pad_w=0"
    few, units, twice = (product_of(case(rows, "CUDA 8", layer.format(blocks), "pseudo")) for blocks in (16, 56, 112))
    assert few == pytest.approx(units) == pytest.approx(twice)


def test_no_estimate_reads_where_a_row_stands_in_a_list() -> None:
    """Small layers far down NeuSight's lists took longer: that tells how they were measured, and nothing of a layer."""
    row = next(row for row in shipped_rows() if "benchmark mode" in row.software)
    first, last = (interpret(replace(row, source_path=f"some list line {line}")) for line in (2, 5000))
    assert (first.work.columns == last.work.columns).all()


def test_a_library_without_winograd_multiplies_as_it_is_written(rows: list[Row]) -> None:
    """NVIDIA has tiled FFTs for small filters in cuDNN 4 and Winograd's algorithms in 5; in 3, FFTs for 5 × 5."""
    row = next(row for row in rows if row.software == "cuBLAS/cuDNN CUDA 8" and row.precision == "fp32")
    shape = SHAPE.format(128, 384, 13, 13, 384)
    direct = 128 * 13 * 13 * 384 * 384 * 9
    assert multiplications(interpret(replace(row, software="cuDNN 2", seq_or_shape=shape))) == direct
    assert multiplications(interpret(replace(row, software="cuDNN 5.1", seq_or_shape=shape))) < direct / 2


def test_large_filters_are_multiplied_by_their_spectra(rows: list[Row]) -> None:
    """A V100 of 15.7 TFLOP/s did this layer of 3.85 GFLOP in 192 µs: at 20 TFLOP/s, were all of it done."""
    shape = Convolution.of(
        sizes_of_convolution("N=16,C=192,H=28,W=28,K=32,R=5,S=5,pad_h=2,pad_w=2,stride_v=1,stride_h=1")
    )
    inside = 32 - 5 + 1  # outputs along a tile whose inputs all lie in it
    tiles = 16 * len(range(0, 28, inside)) ** 2
    spectrum = np.fft.rfft2(np.zeros((32, 32))).size
    product = shape.transformed(FP32, 32)[2]
    assert product.m * product.n * product.k * product.batch == 4 * tiles * 32 * 192 * spectrum
    measured = case(rows, "CUDA 9", "N=16,C=192,H=28,W=28,K=32,R=5,S=5,pad_h=2,pad_w=2,stride_v=1,stride_h=1", "fp32")
    arithmetic, _ = bound(CaseBatch.of([(measured.engine, measured.work, measured.cached)]))
    assert shape.flops / measured.engine.matmul > 192e-6 > arithmetic[0]
    assert "FFT, 32" in shape.algorithms(FP32)
    for strided in ("stride_v=2,stride_h=2", "stride_v=1,stride_h=2"):
        other = Convolution.of(sizes_of_convolution(f"N=16,C=192,H=28,W=28,K=32,R=5,S=5,pad_h=2,pad_w=2,{strided}"))
        assert set(other.algorithms(FP32)) == {"product"}


def test_a_framework_that_unrolls_writes_every_input_of_every_output(rows: list[Row]) -> None:
    """Counted on an array: 5 images, each its columns and the product that reads them (torch/cunn, Caffe)."""
    image = np.zeros((6, 12, 17))
    columns = np.lib.stride_tricks.sliding_window_view(image, (3, 5), axis=(1, 2))[:, ::2, ::2]
    shape = "N=5,C=6,H=12,W=17,K=8,R=3,S=5,pad_h=0,pad_w=0,stride_v=2,stride_h=2"
    row = next(row for row in rows if row.precision == "fp32" and "cuDNN" in row.software)
    work = interpret(replace(row, software="Torch7 SpatialConvolutionMM (cuBLAS)", seq_or_shape=shape)).work
    assert work.launches == 3 * 5
    unfolding = work["moved"][(work["kind"] == VECTOR) & (work["count"] == 5)].max()
    assert unfolding == 4 * (image.size + columns.size)
    assert (work["moved"][work["kind"] == MATMUL] > 4 * columns.size).all()
    assert work.flops == 2 * 5 * 8 * columns.size


def torch7(row: Row) -> bool:
    """Tell whether an examiner's row is of a whole network that Torch7 ran in single precision through cuDNN 5."""
    return "cuDNN 5" in row.software and bool(re.match("vgg|resnet", row.model)) and row.workload.endswith("inference")


def test_networks_of_small_filters_are_told_like_others_where_vector_units_multiply() -> None:
    """VGG is all 3 × 3, ResNet-50 hardly: in rows that no fit sees they were apart by 1.8 without Winograd's."""
    result = validate([row for row in blind_evaluation_rows(1) if torch7(row)]).predictions
    vgg = [each.ratio for each in result if each.row.model.startswith("vgg")]
    deep = [each.ratio for each in result if each.row.model in ("resnet50", "resnet101", "resnet152")]
    assert len(vgg) >= 4
    assert len(deep) >= 6
    assert 1 / 1.4 < np.median(vgg) / np.median(deep) < 1.4


def test_only_vector_units_save_multiplications_in_networks() -> None:
    """VGG-16 has 15.35 G multiply-adds in 3 × 3 convolutions and 0.12 G beside them (Simonyan and Zisserman).

    Small blocks lengthen the sums of all its products alike; the last layer's, 4,096 deep, tells by how much.
    """
    row = next(row for row in blind_evaluation_rows(1) if torch7(row) and row.model == "vgg16")
    batch = int(row.batch)

    def counted(case: Case) -> float:
        return multiplications(case) * 4096 / float(case.work["k"][case.work["kind"] == MATMUL][-1])

    assert counted(interpret(row)) == pytest.approx(batch * (15.35e9 / SAVED_ON_GPU + 0.124e9), rel=0.01)
    for software, precision, device in (
        ("Torch7, cuDNN 3", "fp32", row.device),
        ("Torch7 native", "fp32", row.device),
        ("PyTorch 2.1", "fp16", "NVIDIA V100"),
    ):
        other = interpret(replace(row, software=software, precision=precision, device=device))
        assert counted(other) == pytest.approx(batch * 15.47e9, rel=0.01), software


def test_networks_save_what_single_layers_do() -> None:
    """Rates of DeepBench's libraries over the peak of FP32: layers of 3 × 3 and stride 1, and plain products."""
    layers, products = [], []
    for row in shipped_rows():
        if row.precision != "fp32" or "GPU" not in row.device_class or "baidu" not in row.source.lower():
            continue
        case = interpret(row)
        rate = case.work.flops / case.seconds / case.engine.vector
        if case.kind == "gemm" and case.work.flops > 2e9 and min(case.work[name].min() for name in "mnk") >= 32:
            products.append(rate)
        elif row.workload.startswith("2D conv"):
            shape = Convolution.of(sizes_of_convolution(row.seq_or_shape))
            if shape.is_three_by_three and min(shape.channels, shape.filters) >= 32 and shape.flops > 2e9:
                layers.append(shape.flops / case.seconds / case.engine.vector)
    assert min(len(layers), len(products)) >= 25
    assert np.median(layers) / np.median(products) == pytest.approx(SAVED_ON_GPU, rel=0.05)


def test_large_layers_of_a_machine_that_the_fit_never_saw_are_told() -> None:
    """Above 4 GFLOP arithmetic decides, not the call; as one product each, half of them were off by 40 % or more."""
    apart = [
        abs(each.seconds / each.case.seconds - 1)
        for each in held_out_predictions("device")
        if each.case is not None
        and each.case.setting.startswith("eager convolution")
        and Convolution.of(sizes_of_convolution(each.row.seq_or_shape)).flops > 4e9
    ]
    assert len(apart) >= 30
    assert float(np.median(apart)) < 0.25


def test_a_call_takes_longer_the_more_shapes_its_program_has_tried(rows: list[Row]) -> None:
    """The least work of NeuSight's files takes 61 µs at line 6 of an A100's and 319 at line 4469: 38 of 77 MFLOP."""
    own = [row for row in shipped_rows() if "/collect/conv/" in row.source_path]
    place = {row.id: int(row.source_path.rpartition(" line ")[2]) for row in own}
    for device in {row.device for row in own}:
        here = [
            row
            for row in own
            if row.device == device and Convolution.of(sizes_of_convolution(row.seq_or_shape)).flops < 1e9
        ]
        early, late = (
            [row.value for row in here if low <= place[row.id] < high] for low, high in ((0, 1000), (3500, 6000))
        )
        assert min(late) > 2 * min(early), device
        first, last = (
            interpret(replace(here[0], source_path=re.sub(r"line \d+", f"line {at}", here[0].source_path)))
            for at in (6, 4469)
        )
        assert last.work.launches > 3 * first.work.launches > 0, device
    elsewhere = interpret(replace(own[0], source_path="results/conv.csv line 4469"))
    assert elsewhere.work.launches < interpret(own[0]).work.launches


def test_few_channels_run_on_instructions_of_ampere() -> None:
    """Hopper's own loads take strides of 16 bytes: 4 channels in TF32, not 3; an A100 has one kind of instructions."""
    three = next(row for row in shipped_rows() if row.precision == "tf32" and row.seq_or_shape.startswith("N=16,C=3,"))
    four = replace(three, seq_or_shape=three.seq_or_shape.replace("C=3,", "C=4,"))
    for device, part in (("NVIDIA H100 80GB HBM3", 0.63), ("NVIDIA A100-SXM4-40GB", 1.0)):
        few, many = (interpret(replace(row, device=device)) for row in (three, four))
        assert few.engine.matmul / many.engine.matmul == pytest.approx(part, rel=0.01)
        assert few.fastest == pytest.approx(part, rel=0.01)  # its bound is still the machine's


def test_convolutions_of_matrix_units_tell_nothing_of_vector_units() -> None:
    """PyTorch narrows them to TF32 on an A100, and asks other kernels of cuDNN than in FP32."""
    three = next(row for row in shipped_rows() if row.precision == "tf32" and row.seq_or_shape.startswith("N=16,C=3,"))
    plain = replace(three, note=f"{three.note}; no TF32", precision="fp32")
    assert interpret(three).setting == "eager convolution, matrix units on GPU"
    assert interpret(plain).setting == "eager convolution, vector units on GPU"
