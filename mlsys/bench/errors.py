"""What can go wrong when something is measured; each error is one sentence that says what to do."""


class MeasureError(ValueError):
    """Something cannot be measured on this machine."""


class NoCompilerError(MeasureError):
    """torch.compile makes C++ on a CPU, and there is no compiler for it."""


class CompileFailedError(MeasureError):
    """The compiler does not take this model."""


class OutOfMemoryError(MeasureError):
    """The model and its tensors do not fit into memory."""


class OutputsDifferError(MeasureError):
    """The compiled model answers something else; its time means nothing."""
