"""Faults of text tables: told with their place, and with what to do."""

import gzip

import pytest

from lognmf import load_data
from lognmf.io.tables import _check_spelling, _uneven_line


def refused(path, data, **given):
    """The sentence with which a file is refused."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match=path.name) as caught:
        load_data(path, **given)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize("lines", [0, 5000])
def test_another_encoding(tmp_path, lines):
    table = "a,b,c\n" + "1,2,x\n" * lines + "1,2,größe\n"
    advice = "save it as UTF-8, for example with iconv -f latin1 -t utf-8 x.csv > utf8.csv."
    said = "x.csv cannot be read as csv: it is not encoded in UTF-8, but perhaps in Latin-1 or Windows-1252; "
    assert refused(tmp_path / "x.csv", table.encode("latin1")) == said + advice
    assert refused(tmp_path / "x.csv", table.encode("latin1"), labels="c") == said + advice
    wide = refused(tmp_path / "x.csv", table.encode("utf-16"))
    assert "perhaps in UTF-16; save it as UTF-8, for example with iconv -f utf-16 " in wide
    packed = refused(tmp_path / "x.csv.gz", gzip.compress(table.encode("latin1")))
    assert packed.endswith("Windows-1252; save it as UTF-8.")


def test_a_label_file_of_another_encoding(tmp_path):
    (tmp_path / "kinds.txt").write_bytes("groß\nklein\n".encode("latin1"))
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"kinds\.txt cannot be read as txt: it is not encoded in UTF-8"):
        load_data(tmp_path / "x.csv", labels=str(tmp_path / "kinds.txt"))


@pytest.mark.parametrize("row", ["1,2", "1,2,3,4"])
@pytest.mark.parametrize("before", [2, 40])
def test_a_line_of_another_length(tmp_path, row, before):
    table = 'a,b,"c\nd"\n' + "\n" + "1,2,3\n" * before + row + "\n1,2,3\n"
    said = refused(tmp_path / "x.csv", table.encode())
    cells = row.count(",") + 1
    place = f"line {before + 4} has {cells} cells, and the first line has 3"
    assert said == f"x.csv cannot be read as csv: {place}; all must have the same number."


def test_even_lines_and_cells_without_end_have_no_uneven_line(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    assert _uneven_line(lambda: (tmp_path / "x.csv").open("rb"), ",") is None
    (tmp_path / "x.csv").write_text("1," + "2" * 200_000 + "\n3\n")
    assert _uneven_line(lambda: (tmp_path / "x.csv").open("rb"), ",") is None


def test_text_among_numbers_is_quoted_with_its_row(tmp_path):
    table = "a,b\n" + "1,2\n" * 3 + "1,?\n1,x\n"
    said = "Column 'b' of x.csv holds '?' in row 4 of the data, which is not a number: "
    assert refused(tmp_path / "x.csv", table.encode()) == said + "replace it, or leave it empty."
    said = refused(tmp_path / "x.csv", b'a,b\n1,"1,234"\n2,"2,345"\n')
    assert "'1,234' in row 1" in said
    assert said.endswith("write numbers without commas between thousands.")
    said = refused(tmp_path / "x.csv", b"1;2,5\n3;4,5\n3;4,5\n3;?\n")
    assert said.startswith("Column 2 of x.csv holds '?' in row 4")


def test_words_are_no_numbers_with_faults(tmp_path):
    _check_spelling("'a'", ["u", "v", None, "1"], ".", tmp_path)
    _check_spelling("'a'", ["", None, "NA"], ".", tmp_path)
    (tmp_path / "x.csv").write_text("a,kind\n1,1\n2,2\n3,?\n")
    assert load_data(tmp_path / "x.csv", labels="kind").y.tolist() == ["1", "2", "?"]
