"""Files appear whole or not at all, and what killed processes leave is removed, but nothing else."""

import multiprocessing
import os
import signal
import stat

import pytest

from lognmf import files
from lognmf.files import new_file, working_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path):
    with new_file(tmp_path / "deep" / "a.txt") as fresh:
        fresh.write_text("whole")
        assert fresh.suffix == ".txt"
        assert not (tmp_path / "deep" / "a.txt").exists()
    assert names(tmp_path / "deep") == ["a.txt"]
    usual = (tmp_path / "usual").open("w")
    usual.close()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "usual", tmp_path / "deep" / "a.txt")]
    assert modes[0] == modes[1]


def test_a_failure_leaves_nothing(tmp_path):
    def fail():
        with new_file(tmp_path / "a.txt") as fresh:
            fresh.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert names(tmp_path) == []


def _die(folder):
    with new_file(folder / "a.txt") as fresh:
        fresh.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_die, args=(tmp_path,))
    process.start()
    process.join()
    assert len(names(tmp_path)) == 1
    with new_file(tmp_path / "a.txt") as fresh:
        fresh.write_text("whole")
    assert names(tmp_path) == ["a.txt"]


def test_only_abandoned_working_folders_are_removed(tmp_path):
    mine = [".lognmf-notes", f".lognmf-{'g' * 32}", f"x.lognmf-{'0' * 32}"]
    for name in mine:
        (tmp_path / name).mkdir()
    (tmp_path / f".lognmf-{'1' * 32}").write_text("a file")
    (tmp_path / f".lognmf-{'2' * 32}").symlink_to(tmp_path / mine[0])
    kept = names(tmp_path)
    (tmp_path / f".lognmf-{'3' * 32}" / "new").mkdir(parents=True)
    with working_folder(tmp_path) as one, working_folder(tmp_path) as two:
        assert names(tmp_path) == sorted([*kept, one.name, two.name])
    assert names(tmp_path) == kept


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_lock", lambda folder: None)
    with working_folder(tmp_path) as one:
        (one / "a").touch()
        with working_folder(tmp_path):
            assert (one / "a").exists()
        monkeypatch.undo()
        with working_folder(tmp_path):
            assert (one / "a").exists()
    assert names(tmp_path) == []


def test_an_unlocked_folder_of_a_killed_run_is_left_alone(tmp_path):
    left = tmp_path / f".lognmf-unlocked-{'0' * 32}"
    left.mkdir()
    with working_folder(tmp_path):
        assert left.exists()
    assert names(tmp_path) == [left.name]
