"""One network in five forms: each form answers the same, by code that others wrote."""

import numpy as np
import pytest

from mlsys.measure.backends import BACKENDS, Subject
from mlsys.measure.integer_check import IntegerCheck, check_integers
from mlsys.measure.networks.chains import NETS, inputs_of, net_of, reference
from mlsys.measure.networks.int8 import quantized, run_int8

pytest.importorskip("torch")


def answer(backend: str, name: str, format: str) -> np.ndarray:
    runner = BACKENDS[backend]()
    subject = Subject(name, format, net_of(name))
    reason = runner.refuses(subject)
    if reason:
        pytest.skip(reason)
    runner.setup(subject, 1)
    assert runner.run_inference() > 0
    output = runner.output()
    runner.close()
    return output


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("backend", ["eager", "onnxruntime", "openvino", "litert", "tvm"])
def test_every_backend_answers_as_the_plain_sums_do(backend: str, name: str) -> None:
    net = net_of(name)
    wanted = reference(net, inputs_of(net))[-1].ravel()
    assert np.abs(answer(backend, name, "fp32") - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("backend", ["onnxruntime", "openvino", "litert"])
def test_integers_agree_to_the_byte_with_every_runtime_that_does_not_saturate(backend: str, name: str) -> None:
    whole = quantized(net_of(name))
    exact = run_int8(whole, whole.source.to_int(inputs_of(whole.net)))[-1].ravel()
    given = np.rint(answer(backend, name, "int8") / whole.target.scale + whole.target.zero).astype(int)
    check = checked(backend, name)
    assert check.network_steps == np.abs(given - exact).max()
    if backend == "openvino" and check.worst_case_steps:  # it saturates on this CPU, and every log of it says so
        return
    assert not check.worst_case_steps and given.tolist() == exact.tolist()


def checked(backend: str, name: str) -> IntegerCheck:
    runner, subject = BACKENDS[backend](), Subject(name, "int8", net_of(name))
    runner.setup(subject, 1)
    runner.run_inference()
    check = check_integers(runner, subject)
    runner.close()
    assert check is not None
    return check


def test_integers_stay_near_the_real_numbers() -> None:
    net = net_of("ds-cnn")
    batch = inputs_of(net, 8, seed=3)
    whole = quantized(net)
    real = reference(net, batch)[-1].reshape(8, -1)
    near = whole.target.to_real(run_int8(whole, whole.source.to_int(batch))[-1]).reshape(8, -1)
    assert np.abs(real - near).max() < 8 * whole.target.scale
    assert (real.argmax(1) == near.argmax(1)).all()


def test_macs_of_ds_cnn_as_pytorch_counts_them() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from mlsys.measure.networks.export import as_torch

    net = net_of("ds-cnn")
    module = as_torch(net)
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        module(torch.zeros(1, 1, 49, 10))
    assert counter.get_total_flops() == 2 * net.macs
    assert sum(parameter.numel() for parameter in module.parameters()) == net.parameters


def test_a_network_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'ds-cnn'\?"):
        net_of("ds-cn")
