"""Errors of measurements; each message is one sentence that says what to do."""


class MeasureError(ValueError):
    """Base class: a measurement is impossible on this machine."""


class NoCompilerError(MeasureError):
    """There is no C++ compiler, which torch.compile needs on a CPU."""


class CompileFailedError(MeasureError):
    """The compiler does not support this model."""


class OutOfMemoryError(MeasureError):
    """The model and its tensors do not fit into memory."""


class OutputsDifferError(MeasureError):
    """The compiled model returns different results, so its time is meaningless."""


class BackendMissingError(MeasureError):
    """A backend cannot run here, or not this network; the message gives the reason."""


class Unmeasured(Exception):
    """A quantity that this backend or machine does not report; the message gives the reason."""
