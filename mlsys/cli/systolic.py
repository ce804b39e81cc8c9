"""``mlsys systolic``: cycles and accesses of matrix products on a systolic array."""

from pathlib import Path
from typing import Any, get_args

import click

from mlsys.choices import Convention, FoldOverlap, Stationary
from mlsys.cli.common import WrongUsage, one_form, print_csv, print_record, read_csv, say, speak_plainly
from mlsys.cli.parameters import FILE, Whole

_NEEDED = ("name", "M", "N", "K", "array_rows", "array_cols", "dataflow")
_SRAM_KB = 64
_LARGEST = 10**12


@click.command()
@click.argument("shape", nargs=-1, metavar="[M N K]")
@click.option("--rows", "rows_file", type=FILE, help="CSV with one case per row.")
@click.option("--array", "array", default="128x128", show_default=True, help="Rows x columns of the array.")
@click.option(
    "--dataflow",
    type=click.Choice(get_args(Stationary)),
    default="ws",
    show_default=True,
    help="Operand that stays in the array.",
)
@click.option(
    "--convention",
    type=click.Choice(get_args(Convention)),
    default="physical",
    show_default=True,
    help="Count what hardware does, or as SCALE-Sim does.",
)
@click.option(
    "--overlap",
    "fold_overlap",
    type=click.Choice(get_args(FoldOverlap)),
    default="none",
    show_default=True,
    help="How consecutive folds overlap.",
)
@click.option(
    "--sram", type=Whole(), default=_SRAM_KB, show_default=True, help="KiB of each buffer, for rows that give none."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@speak_plainly
def systolic(
    shape: tuple[str, ...],
    rows_file: Path | None,
    array: str,
    dataflow: Stationary,
    convention: Convention,
    fold_overlap: FoldOverlap,
    sram: int,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Count cycles and accesses of an (M × K) by (K × N) product, or of every row of a file.

    A file must have the columns name, M, N, K, array_rows, array_cols and dataflow. It may have ifmap_sram_kb,
    filter_sram_kb, ofmap_sram_kb and word_bytes, and, for convolutions, kind and dims ("ih,iw,kh,kw,cin,cout,stride",
    padding included). The counts are added to its rows.
    """
    from mlsys.api.systolic import systolic as counted

    one_form(as_json, as_csv)
    if bool(shape) == bool(rows_file):
        raise WrongUsage("give either M N K or --rows FILE: mlsys systolic 512 512 512 --array 128x128")
    if rows_file:
        cases = read_csv(rows_file, _NEEDED)
        done = []
        for line, row in enumerate(cases, start=2):
            try:
                done.append(row | _counted(row, convention, fold_overlap, sram).figures())
            except (ValueError, LookupError) as error:
                raise ValueError(f"{rows_file}, line {line}: {error}") from error
        if as_json:
            print_record(done)
        else:
            print_csv(done)
        return
    if len(shape) != 3:
        raise WrongUsage(f"give three sizes, M N K, got {' '.join(shape)}: mlsys systolic 512 512 512")
    height, _, width = array.lower().partition("x")
    sizes = {"M": shape[0], "N": shape[1], "K": shape[2], "array_rows": height, "array_cols": width}
    m, n, k, rows, columns = (_whole(sizes, name) for name in sizes)
    counts = counted(m, n, k, (rows, columns), dataflow, convention=convention, fold_overlap=fold_overlap, sram=sram)
    if as_json:
        print_record(counts.record())
    elif as_csv:
        print_csv([counts.row()])
    else:
        say(_table(counts.row(), convention, fold_overlap, sram))


def _whole(row: dict[str, str], name: str) -> int:
    from mlsys.amounts import parsed_whole

    text = row[name].strip()
    try:
        whole = parsed_whole(text)
    except ValueError:
        whole = 0
    if whole < 1:
        raise ValueError(f"`{name}` must be a whole number >= 1, got {text[:60]!r}")
    if whole > _LARGEST:
        raise ValueError(f"`{name}` must be at most {_LARGEST:,}, got {text[:60]!r}")
    return whole


def _counted(row: dict[str, str], convention: Convention, fold_overlap: FoldOverlap, sram: int) -> Any:
    """Return the counts of the product of a row."""
    from mlsys.models.systolic import DATAFLOWS, count_systolic
    from mlsys.unit_checks import checked_choice

    m, n, k, height, width = (_whole(row, name) for name in ("M", "N", "K", "array_rows", "array_cols"))
    size = _whole(row, "word_bytes") if row.get("word_bytes") else 1
    buffers: dict[str, Any] = {}
    for operand in ("ifmap", "filter", "ofmap"):
        column = f"{operand}_sram_kb"
        buffers[f"{operand}_words"] = (_whole(row, column) if row.get(column) else sram) * 1024 // size
    return count_systolic(
        m, n, k, height, width, checked_choice("count_systolic", "dataflow", row["dataflow"].strip(), DATAFLOWS),
        convention=convention, fold_overlap=fold_overlap, **buffers, window=_window(row, k),
    )  # fmt: skip


def _window(row: dict[str, str], k: int) -> Any:
    """Return how a convolution reuses its input; None for a plain product."""
    from mlsys.models.systolic import Window

    kind, parts = row.get("kind", "").strip(), row.get("dims", "").split(",")
    if kind == "gemm" or (not kind and len(parts) != 7):
        return None
    if len(parts) != 7 or not all(part.strip().isdigit() for part in parts):
        raise ValueError(f"`dims` of a convolution must be 'ih,iw,kh,kw,cin,cout,stride', got {row.get('dims')!r}")
    height, width, kernel_height, kernel_width, _, _, stride = map(int, parts)
    # A depthwise row is one channel, whatever its layer has: K is the number of input channels of a filter.
    return Window(height, width, k // (kernel_height * kernel_width), kernel_height, kernel_width, stride)


def _table(record: dict[str, Any], convention: Convention, fold_overlap: FoldOverlap, sram: int) -> str:
    from mlsys.models.systolic import CONVENTIONS, DATAFLOWS

    head = (
        f"({record['M']} × {record['K']}) by ({record['K']} × {record['N']}) on {record['array_rows']} × "
        f"{record['array_cols']}, {DATAFLOWS[record['dataflow']]}"
    )
    lines = [
        head,
        f"{convention}: {CONVENTIONS[convention]}; overlap {fold_overlap}; buffers of {sram} KiB, 1 byte a word",
    ]
    lines.append(f"  {'cycles':<28}{record['total_cycles']:>20,}")
    for name, label in (
        ("overall_util_pct", "utilisation"),
        ("mapping_eff_pct", "PEs with work"),
        ("compute_util_pct", "utilisation while streaming"),
    ):
        if name in record:
            lines.append(f"  {label:<28}{f'{record[name]:.2f} %' if record[name] != '' else 'undefined':>20}")
    for level in ("sram", "dram"):
        for name in (name for name in record if name.startswith(level)):
            label = f"{level.upper()} {name.removeprefix(f'{level}_').replace('_', ' ')}, words"
            lines.append(f"  {label:<28}{record[name]:>20,}")
    return "\n".join(lines)
