"""Resumable run of a configuration; the folder of results appears once it is complete."""

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlsys.edge.config import Config, EdgeVariant
from mlsys.edge.evaluate import VariantMeasurement, Workbench
from mlsys.errors import ArgumentError, UnreadableError
from mlsys.files import write_bytes, write_text
from mlsys.inputs import read_bytes, read_json

_MANIFEST, _PIECES, _WEIGHTS, _FORM = "edge.json", "pieces", "trained.pt", "mlsys-edge-1"


class EdgeRun:
    """The files of one configuration: ``<folder>.part`` while it runs, ``<folder>`` when it is whole.

    Parameters
    ----------
    config
        Configuration to run.
    folder
        Folder of the results.
    """

    def __init__(self, config: Config, folder: str | Path) -> None:
        self.config, self.folder = config, Path(folder)
        self.part = self.folder.with_name(self.folder.name + ".part")

    @property
    def key(self) -> str:
        """Key that identifies a configuration: a hash of its contents, independent of order."""
        return _digest(self.config.data)

    @property
    def manifest(self) -> dict[str, Any]:
        """Manifest of the finished folder; empty if there is none."""
        return _read_manifest(self.folder)

    @property
    def finished(self) -> bool:
        """Whether the folder holds all results of this configuration."""
        return self.manifest.get("key") == self.key

    def check(self) -> None:
        """Refuse a folder with other contents, before anything is computed.

        Raises
        ------
        ArgumentError
            If the name is a file, or the folder holds another configuration's results or other files.
        """
        for path, what in ((self.folder, "it"), (self.part, f"{self.part.name}, the working folder,")):
            if path.exists() and not path.is_dir():
                raise ArgumentError(f"{path}: {what} is a file; results go into a folder. Choose another --output")
        if self.folder.is_dir() and not self.finished and any(self.folder.iterdir()):
            whose = "results of another configuration" if self.manifest else "files that are not from a run"
            raise ArgumentError(f"{self.folder} holds {whose}. Choose another --output, or remove it")
        if self.part.is_dir() and any(self.part.iterdir()) and not _read_manifest(self.part):
            raise ArgumentError(
                f"{self.part} holds files that are not from a run. Choose another --output, or remove it"
            )

    def prepare(self) -> None:
        """Create the working folder, and remove incomplete files of a killed process."""
        self.check()
        (self.part / _PIECES).mkdir(parents=True, exist_ok=True)
        for left in (*self.part.glob(".*.part"), *(self.part / _PIECES).glob(".*.part")):
            left.unlink(missing_ok=True)
        record = {
            "form": _FORM,
            "key": self.key,
            "machine": _read_manifest(self.part).get("machine") or _machine(self.config),
            "config": self.config.data,
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        write_text(self.part / _MANIFEST, text + "\n")

    def piece(self, variant: EdgeVariant) -> VariantMeasurement | None:
        """Return the stored results of a variant from an earlier start; None if there are none or they are damaged."""
        try:
            kept = read_json(self.part / _PIECES / self._name(variant))
            return VariantMeasurement(**kept["found"]) if kept["sha256"] == _sum(kept["found"]) else None
        except (UnreadableError, LookupError, TypeError):
            return None

    def keep(self, variant: EdgeVariant, measured: VariantMeasurement) -> None:
        """Store the results of a variant."""
        kept = {"found": measured.record(), "sha256": _sum(measured.record())}
        text = json.dumps(kept, ensure_ascii=False, allow_nan=False)
        write_text(self.part / _PIECES / self._name(variant), text + "\n")

    def _name(self, variant: EdgeVariant) -> str:
        return f"{_digest([_training_part(self.config), _timing_part(self.config), list(variant)])}.json"

    def trained(self, bench: Workbench) -> None:
        """Load weights trained by an earlier start into a workbench, or train and store them."""
        import torch

        path = self.part / f"{_digest(_training_part(self.config))}-{_WEIGHTS}"
        if path.is_file():
            module = bench.fresh()
            try:
                module.load_state_dict(torch.load(path, weights_only=True))
            except Exception:  # a file of another version of PyTorch, or of another network: train again
                path.unlink()
            else:
                bench.trained = module.eval()
                return
        stream = io.BytesIO()
        torch.save(bench.trained.state_dict(), stream)
        write_bytes(path, stream.getvalue())

    def finish(self) -> None:
        """Rename the working folder to its final name."""
        for left in self.part.glob(f"*-{_WEIGHTS}"):
            write_bytes(self.part / _WEIGHTS, read_bytes(left))
            left.unlink()
        if self.folder.is_dir():
            self.folder.rmdir()  # empty, as checked by `check`
        os.replace(self.part, self.folder)


def _sum(record: Any) -> str:
    """Return the checksum of a piece, by which damage is detected."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _training_part(config: Config) -> list[Any]:
    from importlib.metadata import version

    return [config.network, config.source, config.seed, config.training, version("torch")]


def _timing_part(config: Config) -> list[Any]:
    timing = [config.batch, config.samples, config.repeats, config.warmup, config.threads, config.backend]
    return [*timing, config.device]


def _machine(config: Config) -> str:
    from importlib.metadata import version

    if config.device is not None:
        return f"torch {version('torch')}; nothing was timed."
    from mlsys.measure.machine import this_machine

    packages = ", ".join(f"{name} {version(name)}" for name in ("torch-pruning", "scikit-learn"))
    return f"{'; '.join(this_machine().explain().splitlines())}; {packages}."


def machine_of(folder: Path) -> str:
    """Return the machine, software and start date of a folder's run."""
    return str(_read_manifest(folder).get("machine", ""))


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / _MANIFEST)
    except UnreadableError:
        return {}
    return manifest if isinstance(manifest, dict) and manifest.get("form") == _FORM else {}


def run(
    config: Config,
    folder: str | Path,
    *,
    write: Callable[[Config, tuple[VariantMeasurement, ...], Path], None],
    on_progress: Callable[[int, int, EdgeVariant], object] = lambda done, count, variant: None,
) -> tuple[VariantMeasurement, ...]:
    """Build, evaluate and time every variant, and write the results; a stopped run resumes.

    Parameters
    ----------
    config
        Configuration to run.
    folder
        Folder of the complete results; until then, a folder of that name with ``.part`` holds the work.
    write
        Function that writes the reports into a folder.
    on_progress
        Called before each variant with the number done, the total, and the next variant.

    Returns
    -------
    tuple of Measured
        In the order of ``config.variants``.

    Raises
    ------
    ArgumentError
        If the folder has other contents, or network, data or kernels are missing.
    """
    files = EdgeRun(config, folder)
    if files.finished:
        return measured_of(config, folder)
    bench = Workbench(config)
    files.check()
    bench.fresh()  # incompatible settings are found before anything is written
    files.prepare()
    files.trained(bench)
    finished = []
    for index, variant in enumerate(config.variants):
        measured = files.piece(variant)
        if measured is None:
            on_progress(index, len(config.variants), variant)
            measured = bench.measure(variant)
            files.keep(variant, measured)
        finished.append(measured)
    write(config, tuple(finished), files.part)
    files.finish()
    return tuple(finished)


def measured_of(config: Config, folder: str | Path) -> tuple[VariantMeasurement, ...]:
    """Return the results of a finished run.

    Raises
    ------
    ArgumentError
        If the folder holds no finished run of this configuration, or a piece of it is missing or damaged.
    """
    files = EdgeRun(config, folder)
    if not files.finished:
        hint = f" {files.part} holds an unfinished run: run it again to resume." if files.part.is_dir() else ""
        raise ArgumentError(f"{folder} holds no finished run of this configuration.{hint} Write mlsys edge run CONFIG")
    files.part = files.folder
    parts = [files.piece(variant) for variant in config.variants]
    missing = [str(variant) for variant, part in zip(config.variants, parts, strict=True) if part is None]
    if missing:
        raise ArgumentError(
            f"{folder}: pieces missing or damaged: {', '.join(missing)}. Remove the folder and run again"
        )
    return tuple(part for part in parts if part is not None)
