"""The five benchmarks, on small files in the published layouts, against plain-Python twins."""

from __future__ import annotations

import csv
import mmap
import sys

import numpy as np
import pytest

import naive_datasets as naive
from tisat.errors import DataFileError, MissingExtraError, ParameterError
from tisat.events import events_from_labels
from tisat_bench import datasets


def is_mapped(array) -> bool:
    """Whether an array's memory is a file."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


def test_smd_is_what_a_plain_reader_reads(smd):
    found = datasets.load("smd", smd, strict=False)
    for entity in found:
        folder = smd / "ServerMachineDataset"
        assert entity.train.values.tolist() == naive.table(folder / "train" / f"{entity.name}.txt")
        assert entity.test.values.tolist() == naive.table(folder / "test" / f"{entity.name}.txt")
        assert entity.test.events.tolist() == [[5, 9]]
        assert entity.train.labels is None
        assert entity.test.period == entity.period == 60
        assert entity.test.name == entity.name


def test_smd_machines_come_in_the_order_of_their_numbers(smd):
    found = datasets.load("smd", smd, strict=False)
    assert found.names == ("machine-1-1", "machine-3-2")
    assert found.missing[-2:] == ("machine-3-10", "machine-3-11")


def test_smd_attributions_channels_counted_from_zero(smd):
    attribution = datasets.load("smd", smd, strict=False)["machine-3-2"].interpretation
    assert attribution == (((5, 9), (0, 37)),)


def test_an_absent_entity_is_named_and_refused_only_when_asked_for(smd):
    found = datasets.load("smd", smd, strict=False)
    assert "machine-3-10" in found.missing
    with pytest.raises(DataFileError, match=r"'machine-3-10' of data set 'smd' must have its train and test values"):
        datasets.load("smd", smd, entities="machine-3-10")
    with pytest.raises(ParameterError, match=r"machine-9-9"):
        datasets.load("smd", smd, entities=["machine-9-9"])
    with pytest.raises(ParameterError, match=r"no entity 'machine-3-10' loaded; its values are not"):
        found["machine-3-10"]


def test_entities_are_chosen_in_the_order_asked(smd):
    found = datasets.load("smd", smd, entities=["machine-3-2", "machine-1-1"], strict=False)
    assert [entity.name for entity in found] == ["machine-3-2", "machine-1-1"]
    assert len(datasets.load("smd", smd, entities="machine-1-1", strict=False)) == 1


def test_values_are_read_only_when_asked_for(smd):
    (smd / "ServerMachineDataset" / "train" / "machine-1-1.txt").write_bytes(b"\xff\xfe garbage")
    entity = datasets.load("smd", smd, strict=False)["machine-1-1"]
    assert len(entity.test) == 20
    with pytest.raises(DataFileError):
        entity.train  # noqa: B018


def test_a_loop_does_not_keep_what_it_read(smd):
    found = datasets.load("smd", smd, strict=False)
    for entity in found:
        entity.train  # noqa: B018
    assert all("train" not in vars(entity) for entity in found.entities)
    assert found["machine-1-1"].train is found["machine-1-1"].train


def test_published_row_counts_are_demanded_unless_told_otherwise(smd):
    with pytest.raises(DataFileError, match=r"machine-1-1.txt' must have the 28479 rows .*Got 20 rows"):
        datasets.load("smd", smd)["machine-1-1"].test  # noqa: B018


def test_labels_demand_the_published_rows_too(smd, telemanom, psm, swat):
    for name, file in (
        ("smd", "machine-1-1.txt"),
        ("msl", "labeled_anomalies.csv"),
        ("psm", "test_label.csv"),
        ("swat", "Attack_v0"),
    ):
        with pytest.raises(DataFileError, match=rf"{file}.*rows its publisher gave it"):
            datasets.labels(name, smd)
        assert datasets.labels(name, smd, strict=False)


def test_labels_need_no_values(telemanom):
    for file in (telemanom / "telemanom" / "test").iterdir():
        file.unlink()
    assert set(datasets.labels("smap", telemanom, strict=False)) == {"P-1", "P-2"}


def test_telemanom_events_are_those_a_plain_reader_marks(telemanom):
    with (telemanom / "telemanom" / "labeled_anomalies.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name in ("smap", "msl"):
        for channel, labels in datasets.labels(name, telemanom, strict=False).items():
            assert labels.astype(int).tolist() == naive.telemanom_labels(rows, channel)


def test_p2_is_merged_and_t10_left_out(telemanom):
    smap = datasets.load("smap", telemanom, strict=False)
    assert smap.names == ("P-1", "P-2")
    assert smap["P-2"].test.events.tolist() == [[3, 9]]
    assert datasets.load("msl", telemanom, strict=False).names == ("C-1",)


def test_both_readings_of_the_telemetry_are_offered(telemanom):
    array = np.load(telemanom / "telemanom" / "test" / "C-1.npy")
    paper = datasets.load("msl", telemanom, strict=False)["C-1"].test
    assert paper.values.tolist() == array[:, :1].tolist()
    assert paper.channels == ("telemetry",)
    whole = datasets.load("msl", telemanom, telemetry_only=False, strict=False)["C-1"].test
    assert whole.values.tolist() == array.tolist()
    assert whole.channels[:2] == ("telemetry", "command-1")
    assert is_mapped(whole.values)


def test_psm_keeps_empty_cells_missing_and_its_clock_out_of_the_channels(psm):
    entity = datasets.load("psm", psm, strict=False)["psm"]
    assert entity.train.n_channels == 25
    assert entity.train.missing == 26
    assert np.isnan(entity.train.values[3]).all()
    assert entity.test.missing == 0
    assert entity.test.timestamps[0] == 6000
    assert entity.test.period == 60
    assert entity.test.events.tolist() == [[2, 4], [8, 9]]


def test_psm_without_its_time_column_is_the_same(psm):
    before = datasets.load("psm", psm, strict=False)["psm"].test.values.tolist()
    file = psm / "PSM" / "test.csv"
    file.write_text("\n".join(line.partition(",")[2] for line in file.read_text().splitlines()) + "\n")
    assert datasets.load("psm", psm, strict=False)["psm"].test.values.tolist() == before


def test_swat_is_read_through_its_quirks(swat, swat_sheets):
    entity = datasets.load("swat", swat, strict=False)["swat"]
    sheet = swat_sheets["SWaT_Dataset_Attack_v0"][2:]
    assert entity.test.values.tolist() == [[float(cell) for cell in row[1:-1]] for row in sheet]
    assert entity.test.labels.astype(int).tolist() == [naive.swat_label(row[-1]) for row in sheet]
    midnight = np.datetime64("2015-12-28")
    seconds = (entity.test.timestamps - midnight) / np.timedelta64(1, "s")
    assert seconds.tolist() == [naive.swat_seconds(row[0]) for row in sheet]
    assert entity.test.channels[:3] == ("FIT101", "LIT101", "MV101")
    assert entity.test.period == 1


def test_swat_takes_the_second_normal_log_unless_asked(swat):
    assert len(datasets.load("swat", swat, strict=False)["swat"].train) == 9
    assert len(datasets.load("swat", swat, version="v0", strict=False)["swat"].train) == 14
    (swat / "SWaT" / "SWaT_Dataset_Normal_v1.csv").unlink()
    assert len(datasets.load("swat", swat, strict=False)["swat"].train) == 14
    with pytest.raises(ParameterError, match="must be a normal log of the folder: v0"):
        datasets.load("swat", swat, version="v1")
    with pytest.raises(DataFileError, match="must have the 496800 rows"):
        datasets.load("swat", swat)["swat"].train  # noqa: B018


def test_swat_with_semicolons_and_decimal_commas_is_the_same(swat, swat_sheets):
    before = datasets.load("swat", swat, strict=False)["swat"].test
    sheet = swat_sheets["SWaT_Dataset_Attack_v0"]
    text = "\n".join(";".join(cell.replace(".", ",") for cell in row) for row in sheet)
    (swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv").write_text(text + "\n")
    after = datasets.load("swat", swat, strict=False)["swat"].test
    assert after.values.tolist() == before.values.tolist()
    assert after.labels.tolist() == before.labels.tolist()


def _as_workbooks(swat, sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl writes the workbooks this test reads")
    for name, sheet in sheets.items():
        workbook = openpyxl.Workbook(write_only=True)
        page = workbook.create_sheet()
        for number, row in enumerate(sheet):
            page.append(row if number < 2 else [row[0], *(float(cell) for cell in row[1:-1]), row[-1]])
        workbook.save(swat / "SWaT" / f"{name}.xlsx")
        (swat / "SWaT" / f"{name}.csv").unlink()


def test_swat_as_workbook_is_the_same_as_text(swat, swat_sheets):
    pytest.importorskip("python_calamine", reason="the excel extra is not installed")
    before = datasets.load("swat", swat, strict=False)["swat"]
    text = (before.train, before.test)
    _as_workbooks(swat, swat_sheets)
    after = datasets.load("swat", swat, strict=False)["swat"]
    for a, b in zip(text, (after.train, after.test), strict=True):
        assert a.values.tolist() == b.values.tolist()
        assert a.timestamps.tolist() == b.timestamps.tolist()
    assert after.test.events.tolist() == text[1].events.tolist()


def test_without_the_excel_extra_the_message_is_the_command(swat, monkeypatch):
    (swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv").rename(swat / "SWaT" / "SWaT_Dataset_Attack_v0.xlsx")
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r"pip install './packages/tisat\[excel\]'"):
        datasets.load("swat", swat, strict=False)["swat"].test  # noqa: B018


def test_swat_times_that_repeat_are_replaced_aloud(swat):
    file = swat / "SWaT" / "SWaT_Dataset_Attack_v0.csv"
    lines = file.read_text().splitlines()
    lines[6] = lines[5].partition(",")[0] + "," + lines[6].partition(",")[2]
    file.write_text("\n".join(lines) + "\n")
    entity = datasets.load("swat", swat, strict=False)["swat"]
    with pytest.warns(UserWarning, match="do not increase at 1 rows, first at row 4"):
        test = entity.test
    assert test.timestamps.tolist() == list(range(12))


def test_swat_events_alone_give_the_labels(tmp_path):
    (tmp_path / "SWaT").mkdir()
    (tmp_path / "SWaT" / "events.csv").write_text("start,stop\n10,20\n30,31\n")
    labels = datasets.labels("swat", tmp_path)["swat"]
    assert len(labels) == 449_919
    assert events_from_labels(labels).tolist() == [[10, 20], [30, 31]]
    (tmp_path / "SWaT" / "events.csv").write_text("start,stop\n10,20\n31,30\n")
    with pytest.raises(DataFileError, match=r"events.csv.*Got 31,30 at row 1 \(line 3\)"):
        datasets.labels("swat", tmp_path)


def test_the_folder_is_the_argument_then_the_environment_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("TISAT_DATA", raising=False)
    assert datasets.data_root().parts[-2:] == (".cache", "tisat")
    monkeypatch.setenv("TISAT_DATA", str(tmp_path))
    assert datasets.data_root() == tmp_path
    assert datasets.data_root("elsewhere").name == "elsewhere"


def test_a_folder_that_is_not_there_says_how_to_get_the_data(tmp_path):
    for name in datasets.NAMES:
        with pytest.raises(DataFileError, match="To get it: "):
            datasets.load(name, tmp_path)
        with pytest.raises(DataFileError, match="To get it: "):
            datasets.labels(name, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "wadi"}, "must be one of 'smd', 'msl', 'smap', 'swat', 'psm'"),
        ({"name": "smd", "telemetry_only": True}, "must be None for 'smd'"),
        ({"name": "smd", "version": "v0"}, "must be None for 'smd'"),
        ({"name": "swat", "version": "v7"}, "must be one of 'v0', 'v1'"),
        ({"name": "smd", "train": 0.5}, "must be None for 'smd'"),
        ({"name": "smd", "strict": 1}, "must be True or False"),
    ],
)
def test_bad_arguments_are_refused(tmp_path, arguments, message):
    with pytest.raises(ParameterError, match=message):
        datasets.load(**arguments, data=tmp_path)


@pytest.mark.parametrize("name", datasets.NAMES)
def test_cards_are_whole(name):
    known = datasets.card(name)
    assert known.problems
    assert known.source.startswith("https://")
    assert known.obtain
    test_rows = [test for _, test in known.rows.values() if test is not None]
    assert sum(test_rows) == known.test_rows
    assert len(test_rows) == known.entities
    assert len({file.path for file in known.files}) == len(known.files)
    if known.channel_names:
        assert len(known.channel_names) == known.channels
