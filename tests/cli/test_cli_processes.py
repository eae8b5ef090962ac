"""The command line as a process: stopped half-way, or with packages missing."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from lognmf.cli import main as cli

LONG = """
    from lognmf.cli.main import main
    main(["fit", "digits", "-k", "3", "--max-iter", "100000000", "--tol", "0", "--out", "r"])
"""
SLOW = """
    import time
    from lognmf import plots
    from lognmf.cli.main import main
    def parts(*_, **__):
        print("writing")
        time.sleep(60)
    plots.parts = parts
    main(["fit", "x.npy", "-k", "2", "--max-iter", "5", "--out", "r", "--force"])
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start():
    """Start a Python process with the command line in reach, unbuffered."""
    processes = []

    def start(program):
        # A shell's background job ignores Ctrl-C, and so would we.
        opening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        command = [sys.executable, "-u", "-c", opening + textwrap.dedent(program)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, env=environment, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_fit_writes_nothing(start, here, number, code):
    process = start(LONG)
    assert "digits: 1797 samples" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "interrupted, nothing written" in err
    assert "Traceback" not in err
    assert out == ""
    assert names(here) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_stopped_while_writing_keeps_the_old_results(start, here, number):
    np.save("x.npy", np.random.default_rng(0).random((20, 6)))
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main(["fit", "x.npy", "-k", "3", "--max-iter", "5", "--out", "r"])
    before = {path.name: path.read_bytes() for path in (here / "r").iterdir()}
    process = start(SLOW)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(number)
    err = process.communicate(timeout=30)[1]
    assert process.returncode != 0
    assert "Traceback" not in err
    seen = [path for path in (here / "r").iterdir() if not path.name.startswith(".")]
    assert {path.name: path.read_bytes() for path in seen} == before
    assert names(here) == ["r", "x.npy"]
    if number == signal.SIGKILL:  # nobody can tidy up after that one but the next run
        assert names(here / "r") != sorted(before)
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.main(["fit", "x.npy", "-k", "2", "--max-iter", "5", "--out", "r", "--force"])
    assert names(here / "r") == sorted(before)


@pytest.mark.parametrize(
    ("number", "code", "where"), [(signal.SIGINT, 130, "stop"), (signal.SIGTERM, 143, "inside_typer")]
)
def test_stopped_outside_the_work(start, number, code, where):
    process = start(
        f"""
        import os
        from lognmf.cli import main
        def stop():
            os.kill(os.getpid(), {int(number)})
        def inside_typer():
            import typer
            app = typer.Typer()
            app.command()(stop)
            return app
        main._app = {where}
        main.main([])
        """
    )
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "", "interrupted\n")


def test_the_signal_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_without_the_extra(start):
    process = start(
        """
        sys.modules["typer"] = sys.modules["pyarrow"] = None
        from lognmf.cli.main import main
        main(["fit", "digits", "-k", "3"])
        """
    )
    out, err = process.communicate()
    assert process.returncode == 1
    assert err == 'The command line needs typer and pyarrow: run pip install "lognmf[cli]".\n'
    assert out == ""
