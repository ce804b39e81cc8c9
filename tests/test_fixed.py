"""What every number rests on cannot be changed under it."""

import pickle

import pytest

from mlsys import Hardware, ureg
from mlsys.precision import PRECISIONS
from mlsys.units import Q_


def test_number_formats_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRECISIONS["fp16"] = 8  # type: ignore[index]
    assert PRECISIONS["fp16"] == 16


@pytest.mark.parametrize("definition", ["byte = 9 bit", "@alias byte = octet9", "flop9 = 9 * FLOP"])
def test_units_cannot_be_redefined(definition: str) -> None:
    with pytest.raises(TypeError, match="the units of mlsys are fixed"):
        ureg.define(definition)
    assert Q_(1, "byte").m_as("bit") == 8


def test_the_catalogue_cannot_be_rewired() -> None:
    h100, a100 = Hardware.Cloud.H100, Hardware.Cloud.A100
    with pytest.raises(AttributeError, match=r"Hardware\.Cloud\.A100 cannot be set"):
        Hardware.Cloud.A100 = h100
    with pytest.raises(AttributeError, match=r"Hardware\.Cloud cannot be set"):
        Hardware.Cloud = Hardware.Edge
    with pytest.raises(AttributeError, match=r"Hardware\.A100 cannot be set"):
        Hardware.A100 = a100
    assert Hardware.Cloud.A100 is a100 and pickle.loads(pickle.dumps(a100)) == a100
