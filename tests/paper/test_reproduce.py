"""The paper in one call, on data small enough to try all of it."""

import csv
import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow.parquet
import pytest
from matplotlib.figure import Figure

from lognmf.models import MODELS
from lognmf.paper.analyse import counted, findings, label_free_results, reached
from lognmf.paper.figures import DRAW, draw
from lognmf.paper.methods import WEIGHTS
from lognmf.paper.outputs import markdown
from lognmf.paper.pages import label_free_tables, paper_tables, settings_table
from lognmf.paper.reproduce import STORE, _delete_rows, check_out, plan, reproduce
from lognmf.paper.spec import PRESETS, Data, Preset
from lognmf.paper.store import StudyStore
from lognmf.paper.tables import DATASETS, FIGURES, TABLES, Study

TINY = Preset(dict.fromkeys(WEIGHTS, (0.01, 1.0)), 4, seeds=(1, 2))
DIGITS = dict.fromkeys(DATASETS, Data("digits", 30))
"""All eight sets are one, so that equal cells are computed once."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction") / "out"
    options = {"preset": "tiny", "data": DIGITS, "executor": "inline", "command": "lognmf reproduce <all>"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        blank = dict.fromkeys(DRAW, lambda *_: {"": Figure(figsize=(1, 1))})  # saving takes its time
        patch.setattr("lognmf.paper.figures.DRAW", blank | {"fig-reconstruction": DRAW["fig-reconstruction"]})
        report = reproduce(["all"], out, verbose=0, **options)
    assert (report.failed, report.left) == (0, 0)
    return out


@pytest.fixture
def study(folder):
    return Study(TINY, DIGITS, StudyStore(folder / STORE))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(PRESETS, "tiny", TINY)


def test_everything_is_there(folder):
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"index.html", "index.md", "run.json", "rows.parquet", STORE, "tables/tests.csv"} <= found
    for name in TABLES:
        assert {f"tables/{name}.csv", f"tables/{name}.md", f"tables/{name}-honest.csv"} <= found
    for name in FIGURES:
        stems = [f"{name}-yale", f"{name}-orl"] if name == "fig-reconstruction" else [name]
        assert {f"figures/{stem}.{kind}" for stem in stems for kind in ("png", "svg")} <= found
    assert not any(name.rsplit("/")[-1].startswith(".") for name in found)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(name, study):
    drawings = draw(FIGURES[name], study)
    assert list(drawings) == (["Yale", "ORL"] if name == "fig-reconstruction" else [""])
    assert all(isinstance(drawing, Figure) and drawing.axes for drawing in drawings.values())


def test_the_page_has_all_of_it(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    for target in (*TABLES.values(), *FIGURES.values()):
        assert target.title in page
    assert "lognmf reproduce &lt;all&gt;" in page
    assert "Wilcoxon" in page


def test_how_it_came_about(folder):
    about = json.loads((folder / "run.json").read_text())
    assert about["seed"] == 0
    assert about["honest_seeds"] == [1, 2]
    assert about["failures"] == []
    assert {"numpy", "lognmf", "device"} <= about["made"][0].keys()
    assert str(folder) not in (folder / "run.json").read_text()


def test_the_rows_know_their_protocol(folder, study):
    rows = pyarrow.parquet.read_table(folder / "rows.parquet").to_pylist()
    assert {row["protocol"] for row in rows} == {"paper", "choice", "honest", None}
    honest = [r for r in rows if r["protocol"] == "honest"]
    assert {r["seed"] for r in honest} == {1, 2}
    assert {r["seed"] for r in rows if r["protocol"] == "paper"} == {0}
    assert {"k-means", "spectral clustering"} <= {r["model"] for r in honest}
    assert all(r["options"] and "penalty" in r["options"] for r in rows if r["protocol"] is None)
    clean = [r for r in rows if r["protocol"] == "paper" and r["model"] == "RLS-NMF" and r["noise"] == "none"]
    best = max(
        findings(TABLES["table1"], study),
        key=lambda f: (f.method == "RLS-NMF", f.metric == "accuracy"),
    )
    assert 100 * max(r["accuracy"] for r in clean) == pytest.approx(best.ours, abs=1e-3)


def test_tables_hold_ours_and_the_papers(folder, study):
    with (folder / "tables" / "table1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 * 9 * 3
    found = findings(TABLES["table1"], study)
    assert [f.method for f in found[::3]] == list(MODELS) * 8
    for row, finding in zip(rows, found, strict=True):
        assert float(row["ours"]) == pytest.approx(finding.ours, abs=1e-3)
        assert float(row["paper"]) == finding.paper
        assert float(row["difference"]) == pytest.approx(finding.ours - finding.paper, abs=1e-3)
        assert finding.highest >= finding.ours
    assert {int(row["settings"]) for row in rows} == {1, 2, 8, 16}


def test_wnmf_without_a_mask_is_nmf(study):
    found = {(f.method, f.metric, f.entry.label): f.ours for f in findings(TABLES["table2"], study)}
    assert all(found["WNMF", m, e] == ours for (name, m, e), ours in found.items() if name == "NMF")


def test_removals_without_replacement_have_no_number_in_the_paper(study):
    found = findings(TABLES["table2"], study)
    assert len(found) == 2 * 3 * 9 * 3
    assert all((f.paper is None) == (not f.noise.replacement) for f in found)
    titles = [table.title for table in paper_tables(TABLES["table2"], found)]
    assert titles[:1] + titles[3:4] == ["Accuracy", "Accuracy, without replacement"]


def test_what_counts(study):
    found = [f for name in TABLES for f in findings(TABLES[name], study)]
    judged = [f for f in found if counted(f)]
    assert not any(f.entry.dataset == "AR" for f in judged)
    assert not any(f.entry.label == "60 %" for f in judged)
    good, known = reached(judged, ["RLS-NMF"])
    assert 0 <= good <= known == 3 * (7 + 6 + 9)
    assert reached(judged, ["RLS-NMF"], highest=True)[0] >= good


def test_label_free_results(study):
    results = label_free_results(TABLES["table2"], study)
    names = {r.name for r in results}
    assert {"k-means", "spectral clustering", "WNMF, mask", "RLS-NMF, all", *MODELS} <= names
    assert all(r.seeds == 2 for r in results)
    for result, (_, _, cell) in zip(results, TABLES["table2"].then(study), strict=True):
        percent = [100 * row["nmi"] for row in study.store.rows(cell)]
        assert result.scores["nmi"] == pytest.approx((np.mean(percent), np.std(percent, ddof=1)))
    assert all(set(r.setting) == {"alpha", "beta", "lam"} for r in results if r.name == "LS-NMF")
    (table,) = label_free_tables(TABLES["table2"], results)
    assert len(table.rows) == 3
    assert all(cell.spread is not None for _, cells in table.rows for cell in cells)
    assert label_free_tables(TABLES["table2"], []) == []


def test_markdown(study):
    table = settings_table(TABLES["table1"], findings(TABLES["table1"], study))
    assert "| data set | GNMF | RMNMF | LS-NMF | RLS-NMF |" in markdown(table)
    first = paper_tables(TABLES["table1"], findings(TABLES["table1"], study))[0]
    lines = markdown(first).splitlines()
    assert lines[0] == "### Accuracy"
    assert "(52.9)" in lines[6]


def test_the_document(folder):
    text = (folder / "index.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    for table in TABLES.values():
        assert table.title in text
    assert "RLS-NMF against k-means" in text
    assert "- command: lognmf reproduce <all>" in text


def test_a_second_call_computes_nothing(folder, tiny, monkeypatch):
    monkeypatch.setattr("lognmf.paper.run.perform", lambda _: pytest.fail("done again"))
    report = reproduce(["table1"], folder, preset="tiny", data=DIGITS, executor="inline", pages=False)
    assert (report.done, report.failed, report.left) == (0, 0, 0)


def test_parts_merge_into_the_whole(folder, tmp_path, tiny, capsys):
    options = {"preset": "tiny", "data": DIGITS, "executor": "inline"}
    report = reproduce(["table1"], tmp_path / "other", merge=[folder / STORE], fit=False, **options)
    assert report.done == 0
    assert "rows taken over" in capsys.readouterr().err
    same = [(where / "tables" / "table1.csv").read_text() for where in (folder, tmp_path / "other")]
    assert same[0] == same[1]


def test_an_empty_store_gives_a_page_too(tmp_path, tiny):
    nothing = [
        "tables",
        *(name for name in FIGURES if name not in ("fig-data", "fig-removed", "fig-gaussian")),
    ]
    reproduce(nothing, tmp_path / "out", preset="tiny", data=DIGITS, fit=False)
    assert "Table 1" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_a_limit_leaves_the_rest(tmp_path, tiny):
    options = {"preset": "tiny", "data": DIGITS, "executor": "inline", "pages": False}
    report = reproduce(["table1"], tmp_path / "out", limit=-1.0, **options)
    assert report.done == 0
    assert report.left >= len(plan(["table1"], Study(TINY, DIGITS, None)))


def test_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="preset must be one of"):
        reproduce(preset="slow", out=tmp_path / "out")
    with pytest.raises(ValueError, match=r"datasets must be among .*; got 'mnist'"):
        reproduce(data=["yale", "mnist"], out=tmp_path / "out")
    with pytest.raises(ValueError, match="Nothing of table2 is about Yale"):
        reproduce(["table2"], data=["yale"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(FileExistsError, match="holds other files"):
        check_out(tmp_path)
    with pytest.raises(FileExistsError, match="is a file"):
        check_out(tmp_path / "holiday.jpg")
    (tmp_path / STORE).touch()
    assert check_out(tmp_path) == tmp_path


def test_force_deletes_rows_and_nothing_else(tmp_path):
    StudyStore(tmp_path / STORE)
    (tmp_path / "holiday.jpg").touch()
    _delete_rows(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
    with closing(sqlite3.connect(tmp_path / STORE)) as file, file:
        file.execute("CREATE TABLE shopping (item TEXT)")
    with pytest.raises(ValueError, match="database of something else"):
        _delete_rows(tmp_path)
    assert (tmp_path / STORE).stat().st_size > 0


def test_rows_are_deleted_only_when_the_run_begins(tmp_path):
    path, options = StudyStore(tmp_path / STORE).path, {"data": DIGITS, "force": True}
    with pytest.raises(ValueError, match="preset must be one of"):
        reproduce(preset="slow", out=tmp_path, **options)
    with pytest.raises(ValueError, match=r"is to be merged and, by --force, to be deleted"):
        reproduce(out=tmp_path, merge=[path], **options)
    assert path.exists()


@pytest.mark.parametrize(("name", "kind"), [("index.html", "folder"), (STORE, "folder"), ("tables", "file")])
def test_what_stands_where_results_belong_is_refused(tmp_path, name, kind):
    (tmp_path / STORE).touch()
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir() if kind == "folder" else (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match=rf"{name} is a {kind}, and in the way"):
        check_out(tmp_path)
