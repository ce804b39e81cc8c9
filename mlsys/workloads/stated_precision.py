"""Number format that a model file states."""

from pathlib import Path

from mlsys.errors import ArgumentError


def stated_precision(model: str | Path) -> str | None:
    """Return the number format that a ``config.json`` states; None where it states none or cannot be read.

    Examples
    --------
    >>> stated_precision("resnet50") is None
    True
    """
    path = Path(model)
    if path.name.endswith(".gguf"):
        return "fp16"  # what llama.cpp keeps in the cache, and what is not quantised
    if path.suffix not in (".json", ".safetensors") and not (path.is_dir() and (path / "config.json").is_file()):
        return None
    from mlsys.workloads.transformer_config.load import described_file
    from mlsys.workloads.transformer_config.read import stated_dtype

    try:
        return stated_dtype(described_file(path))
    except ArgumentError:  # loading the file reports the error
        return None
