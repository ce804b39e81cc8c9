"""Subgraphs that torch compiles while a module runs, such as ``torch.cond``: their caches are cleared afterwards."""

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType

_COMPILED_BY_TORCH = "_higher_order_ops"  # the folder of cond, while_loop, scan, flex_attention and their like


@contextlib.contextmanager
def forgotten_afterwards() -> Iterator[None]:
    """Clear afterwards what torch compiles, or fails to compile, inside the context.

    A part that cannot be compiled under one way of recording is marked, and would then be run frame by frame, and
    refused, under every other way in the same process. What was compiled before, by the user, stays.
    """
    before = {id(code) for code in _compiled()}
    try:
        yield
    finally:
        codes = [code for code in _compiled() if id(code) not in before or _COMPILED_BY_TORCH in code.co_filename]
        if codes:
            from torch._dynamo.eval_frame import reset_code

            for code in codes:
                reset_code(code)


def _compiled() -> list[CodeType]:
    """Return the code that torch has compiled, or tried to."""
    if "torch._dynamo.convert_frame" not in sys.modules:
        return []
    from torch._dynamo.convert_frame import input_codes, output_codes

    codes = [reference() for tracker in (input_codes, output_codes) for reference in tracker.seen]
    return [code for code in codes if code is not None]
