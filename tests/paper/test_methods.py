"""The methods of the study are the paper's nine, whatever else the package can fit."""

import subprocess
import sys
import textwrap

from lognmf.models import MODELS
from lognmf.paper.analyse import numbers
from lognmf.paper.methods import METHODS, OTHERS, OURS

PROGRAM = """
    import sys
    from lognmf.models import MODELS
    if sys.argv[1] == "ten":
        MODELS["Tenth"] = type("Tenth", (MODELS["GNMF"],), {})
    from lognmf.paper.analyse import findings
    from lognmf.paper.methods import CONTESTANTS, OTHERS
    from lognmf.paper.pages import paper_tables
    from lognmf.paper.spec import PRESETS
    from lognmf.paper.store import StudyStore
    from lognmf.paper.tables import DATASETS, TABLES, Study, targets
    study = Study(PRESETS["paper"], DATASETS, StudyStore(sys.argv[2]))
    print(len(MODELS), file=sys.stderr)
    print(list(CONTESTANTS), OTHERS)
    for target in targets(["all"]):
        print(target)
        for cell in target.first(study):
            print(cell.key, cell)
    for table in TABLES.values():
        for one in paper_tables(table, findings(table, study)):
            print(one)
"""


def test_a_tenth_model_changes_no_table(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    commands = [[sys.executable, program, count, tmp_path / f"{count}.db"] for count in ("nine", "ten")]
    plain, more = (subprocess.run(c, capture_output=True, text=True, check=True) for c in commands)
    assert (plain.stderr, more.stderr) == ("9\n", "10\n")
    assert "RLS-NMF" in plain.stdout
    assert plain.stdout == more.stdout


def test_the_papers_columns():
    assert tuple(dict.fromkeys(method for *_, method in numbers())) == METHODS
    assert set(METHODS) <= MODELS.keys()
    assert not set(OURS) & set(OTHERS)
