"""What `mlsys validate` does with a file of the reader's: it keeps it, and refuses one that cannot be meant."""

from pathlib import Path

from click.testing import CliRunner, Result

from mlsys.cli import main

HEADS = "device,device_class,workload,model,precision,seq_or_shape,metric,value,unit\n"
ROW = "RaspberryPi5,edge SoC,CNN inference,{},fp32,224x224 image,latency,{},{}\n"


def validated(path: Path, rows: list[str], *more: str) -> Result:
    path.write_text(HEADS + "".join(rows), encoding="utf-8")
    return CliRunner().invoke(main, ["validate", "--data", str(path), *more])


def test_predictions_are_not_written_over_the_measurements(tmp_path: Path) -> None:
    path, link = tmp_path / "mine.csv", tmp_path / "link.csv"
    link.symlink_to(path)
    rows = [ROW.format("resnet18", 50, "ms"), ROW.format("resnet50", 150, "ms")]
    for out in (path, link):
        result = validated(path, rows, "--csv", str(out))
        assert result.exit_code == 2 and "is an input of this command" in result.output
        assert path.read_text(encoding="utf-8") == HEADS + "".join(rows)
    assert validated(path, rows, "--csv", str(tmp_path / "other.csv")).exit_code == 0


def test_one_row_ten_times_is_not_graded_as_ten(tmp_path: Path) -> None:
    row, again = ROW.format("resnet18", 50, "ms"), ROW.format("resnet18", 51, "ms")
    result = validated(tmp_path / "a.csv", [row] * 10)
    assert result.exit_code == 1 and "lines 2 and 3 and all others are the same" in result.output
    assert "10 rows, but only 1 measurement" in result.output and result.output.count("\n") == 1
    assert validated(tmp_path / "b.csv", [row, again]).exit_code == 0, "the same again is no copy"


def test_a_factor_far_from_one_is_told_as_a_reader_writes_it(tmp_path: Path) -> None:
    rows = [ROW.format(name, 50, "ms") for name in ("resnet18", "resnet34", "resnet50")]
    result = validated(tmp_path / "a.csv", [*rows, ROW.format("vgg16", 400, "s")])
    assert result.exit_code == 0 and "line 5: 400 s takes" in result.output
    assert "e+0" not in result.output and " 0.00 ×" not in result.output
