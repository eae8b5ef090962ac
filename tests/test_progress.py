"""Progress is told once, to whoever listens."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from lognmf import LogSparseNMF, NMFClustering, RobustLogSparseNMF, fit_grid, in_blocks
from lognmf.cli.screen import bars
from lognmf.cli.screen import progress as shown
from lognmf.progress import Listener, Printer, in_words, listening, printed, say, stage, warn


class Notes:
    """Keeps what it is told."""

    def __init__(self):
        self.events = []

    def begin(self, stage):
        self.events.append(("begin", stage.name))

    def move(self, stage):
        self.events.append((stage.name, stage.done))

    def end(self, stage):
        self.events.append(("failed" if stage.failed else "end", stage.name))

    def say(self, sentence):
        self.events.append(sentence)


def test_nested_stages_and_sentences():
    notes = Notes()
    with listening(notes):
        with stage("outer", 2, "steps") as outer:
            outer.move(1)
            with pytest.raises(ValueError, match="no"), stage("inner"):
                raise ValueError("no")  # noqa: EM101
            say("a sentence")
        with listening(alone=True), stage("quiet"):
            say("nothing")
    with stage("later"):
        say("nothing")
    assert notes.events == [
        ("begin", "outer"),
        ("outer", 1),
        ("begin", "inner"),
        ("failed", "inner"),
        "a sentence",
        ("end", "outer"),
    ]


def test_time_left():
    with stage("even", 4) as even, stage("open", 4, at_most=True) as unknown, stage("uneven", 2) as uneven:
        for one in (even, unknown, uneven):
            one.began -= 10
        even.move(1)
        unknown.move(1)
        uneven.move(1, share=0.8)
        assert even.left == pytest.approx(30, rel=0.01)
        assert unknown.left is None
        assert uneven.left == pytest.approx(2.5, rel=0.01)
    assert [in_words(seconds) for seconds in (30, 600, 36000)] == ["30 s", "10 min", "10.0 h"]


def test_a_listener_hears_what_it_asks_for():
    class Results(Listener):
        def move(self, stage):
            heard.append((stage.count, stage.note, stage.result))

    heard = []
    with listening(Results()), stage("grid", 5, "fits") as grid:
        grid.move(2, "GNMF", result="a model")
        grid.move(3)
        say("nothing")
    assert heard == [("2 of 5 fits", "GNMF", "a model"), ("3 of 5 fits", "", None)]


def test_lines(capsys):
    with printed(1), printed(1):  # the second prints nothing again
        for _ in range(2):
            with stage("searching") as search:
                search.note = "found"
        with stage("fitting", 100, "steps", at_most=True) as fit:
            for i in range(100):
                fit.move(i + 1)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [re.sub(r"\d\.\d s", "T", line) for line in err.splitlines()]
    assert lines == ["searching", "found, T", "found, T", "fitting: 100 of at most 100 steps, T"]


def test_every_move_is_a_line_if_asked(capsys):
    with printed(2), stage("fitting", 3, "steps") as fit:
        for i in range(3):
            fit.move(i + 1, "note")
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" note")[0] for line in lines] == [f"fitting: {i} of 3 steps," for i in (1, 2, 3)]
    assert lines[-1].endswith("0 s left")


def test_bars_on_a_terminal():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with shown(console), stage("fitting [all]", 10, "steps", at_most=True) as fit:
        fit.move(4)
        with stage("searching"):
            say("a sentence")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "a sentence" in text
    assert "fitting [all]" in text
    assert "4 steps" in text, "an early end is complete"
    assert "searching" not in text.splitlines()[-1]


def test_lines_elsewhere(capsys):
    with shown(Console(file=io.StringIO(), force_terminal=False)), stage("fitting", 1, "step") as fit:
        fit.move(1)
    assert "fitting: 1 of 1 step" in capsys.readouterr().err
    assert bars(Console(file=io.StringIO())).tasks == []


X = np.random.default_rng(0).random((40, 12))


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (
            lambda: LogSparseNMF(3, lam=1.0, solver="mu", max_iter=30).fit(X),
            (
                "computing the start (nndsvda)",
                "finding 5 neighbours of 40 samples",
                "choosing alpha and beta",
            ),
        ),
        (lambda: RobustLogSparseNMF(3, max_iter=30, alpha=0.1, beta=0.1).fit(X), ("choosing gamma",)),
        (
            lambda: NMFClustering("auto", random_state=0).fit(X),
            ("choosing the number of clusters", "clustering: spectral", "LogSparseNMF"),
        ),
        (
            lambda: LogSparseNMF(3, lam=1.0, init="random", solver="mu", max_iter=5).fit(
                in_blocks(X, rows=10)
            ),
            ("finding 5 neighbours of 40 samples",),
        ),
    ],
)
def test_what_takes_long_is_named(work, names):
    notes = Notes()
    with listening(notes):
        work()
    for name in names:
        assert notes.events.count(("begin", name)) == notes.events.count(("end", name)) == 1


def test_a_printer_listens():
    with listening(Printer()), stage("nothing to tell"):
        pass


WARNED = {
    "fit": lambda model, X: model.fit(X),
    "a wrapper of scikit-learn": lambda model, X: model.set_output(transform="default").fit_transform(X),
    "a pipeline": lambda model, X: make_pipeline(Normalizer(), model).fit(X),
    "a search": lambda model, X: GridSearchCV(
        model, {"n_components": [2]}, cv=2, scoring=lambda *_: 0.0, refit=False
    ).fit(X),
    "a grid": lambda model, X: fit_grid(model, X, {"n_components": [2]}, seeds=[0]).model(0),
}


@pytest.mark.parametrize("call", WARNED.values(), ids=WARNED)
def test_warnings_are_given_at_the_line_of_the_user(call, rng):
    with pytest.warns(ConvergenceWarning, match="ended after max_iter=1 iterations") as caught:
        call(LogSparseNMF(2, max_iter=1, alpha=0.0, beta=0.0), rng.random((30, 6)))
    assert {Path(one.filename).name for one in caught} == {"test_progress.py"}


def test_a_warning_without_a_user_is_given_at_the_outermost_line(monkeypatch):
    monkeypatch.setattr("lognmf.progress._BETWEEN", {name.partition(".")[0] for name in sys.modules})
    with pytest.warns(UserWarning, match="heard"):
        warn("heard")
