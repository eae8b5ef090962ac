"""One thread of BLAS for small problems, and the old number afterwards."""

import multiprocessing
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from lognmf import PlainNMF, cluster
from lognmf.clustering import kmeans
from lognmf.core import threads
from lognmf.core.arrays import gram, product, product_t
from lognmf.core.threads import THREADS, by_rows, in_blocks, one_blas_thread, split, threads_for


def numbers():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = numbers()
    threads._set_blas(dict.fromkeys(libraries, 2))
    if set(numbers()) != {2}:
        pytest.skip("this BLAS cannot be given two threads")
    yield
    threads._set_blas(dict(zip(libraries, before, strict=True)))


SMALL = np.ones((1 << 11, 1 << 11)), 1
LARGE = np.ones((1 << 11, 1 << 11)), 2


def test_small_problems_have_one():
    with threads_for(*SMALL):
        assert set(numbers()) == {1}
        assert THREADS.get() == 1
    assert set(numbers()) == {2}


@pytest.mark.parametrize("X", [LARGE[0], sp.csr_array(LARGE[0])])
def test_large_ones_are_split_over_ours(X):
    """The threads of BLAS spin, and wait for ever where other programs use the cores."""
    with threads_for(X, 2):
        assert set(numbers()) == {1}
        assert THREADS.get() == 2
    assert THREADS.get() == 1
    assert set(numbers()) == {2}


@pytest.mark.parametrize(("count", "ends"), [(9, None), (5, np.array([0, 0, 90, 95, 100, 100])), (1, None)])
def test_parts_cover_everything_once(count, ends):
    seen = np.zeros(count)

    def work(part):
        seen[part] += 1

    for cost in (0, np.inf):
        with threads_for(*LARGE):
            split(work, count, cost, ends=ends)
    assert (seen == 2).all()


def test_wide_products_are_split(rng):
    """The same numbers; what is split is not split again."""
    F, G = rng.random((1 << 11, 4, 8)), rng.random((1 << 11, 4, 8))
    X = rng.random((1 << 11, 1 << 11))
    expected = product(X, F), product_t(X, G), gram(F, G)
    many = np.ones((1 << 14, 4, 8))
    with threads_for(X, 32):
        found = product(X, F), product_t(X, G), gram(F, G)
        inside = by_rows(lambda rows: np.full_like(many[rows], seen(THREADS.get())), many)
    assert set(np.unique(inside)) <= {1, 2}
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def seen(threads):
    """So many threads may split work here; in a thread of the pool it is one."""
    assert threads == (2 if threading.current_thread() is threading.main_thread() else 1)
    return threads


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
@pytest.mark.parametrize(("given", "used"), [("1", 1), ("9", 2), ("0", 1), ("", 2), ("two", 2)])
def test_the_environment_limits_our_threads(monkeypatch, name, given, used):
    monkeypatch.setenv(name, given)
    with threads_for(*LARGE):
        assert THREADS.get() == used


def test_threadpoolctl_limits_our_threads():
    with ThreadpoolController().limit(limits=1), threads_for(*LARGE):
        assert THREADS.get() == 1
    with threads_for(*SMALL), threads_for(*LARGE):  # our own limit does not
        assert THREADS.get() == 2


def test_a_thread_that_wakes_up_late_is_not_waited_for(monkeypatch):
    """The caller does the work that it has not begun."""
    with ThreadPoolExecutor(1) as busy:
        monkeypatch.setattr(threads, "_pool", lambda: busy)
        go, done = threading.Event(), []
        busy.submit(go.wait)
        with threads_for(*LARGE):
            split(done.append, 8, np.inf)
        assert sum(part.stop - part.start for part in done) == 8
        go.set()


def test_tensors_are_left_alone():
    torch = pytest.importorskip("torch")
    with threads_for(torch.ones((4, 4)), 1):
        assert set(numbers()) == {2}


def test_an_error_gives_them_back():
    with pytest.raises(KeyError), threads_for(*LARGE):
        raise KeyError
    assert set(numbers()) == {2}
    assert THREADS.get() == 1


class TestConcurrentFits:
    """The number of BLAS's threads is one for the whole process: who comes last gives it back."""

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
    def test_they_may_end_in_any_order(self, order):
        threads, go = [], [threading.Event() for _ in order]
        inside = threading.Barrier(len(order) + 1)

        def fit(own):
            with threads_for(*SMALL):
                inside.wait()
                own.wait()

        for own in go:
            threads.append(threading.Thread(target=fit, args=(own,), daemon=True))
            threads[-1].start()
        inside.wait()
        for place in order:
            assert set(numbers()) == {1}
            go[place].set()
            threads[place].join()
        assert set(numbers()) == {2}

    def test_a_limit_of_somebody_else_that_ends_later(self):
        """It notes our number and gives that back: the next of ours to end gives the first one back."""
        entered, leave = threading.Event(), threading.Event()

        def other():
            with ThreadpoolController().limit(limits=1, user_api="blas"):
                entered.set()
                leave.wait()

        thread = threading.Thread(target=other, daemon=True)
        with threads_for(*SMALL):
            thread.start()
            entered.wait()
        leave.set()
        thread.join()
        with threads_for(*SMALL):
            assert set(numbers()) == {1}
        assert set(numbers()) == {2}

    def test_models_and_clusterings(self, rng):
        X = rng.random((30, 8))

        def work(seed):
            for _ in range(10):
                PlainNMF(3, init="nndsvda", max_iter=5, random_state=seed).fit(X)
                cluster(X, 3, random_state=seed, n_init=2)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(numbers()) == {2}

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_errors(self, error, rng):
        """Of one fit, while another goes on."""

        class Fails(PlainNMF):
            def _rule(self, *args):
                raise error

        with threads_for(*SMALL):
            with pytest.raises(error):
                Fails(2, random_state=0).fit(rng.random((6, 5)))
            assert set(numbers()) == {1}
        assert set(numbers()) == {2}

    @pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
    def test_a_fork_during_a_fit(self):
        """The child has none of its parent's fits."""
        queue = multiprocessing.get_context("fork").SimpleQueue()

        def child():
            with threads_for(*SMALL):
                queue.put(numbers())
            queue.put(numbers())

        with one_blas_thread(), threads._LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
        process.join(60)
        assert process.exitcode == 0
        assert set(queue.get()) == {1}
        assert set(queue.get()) == {2}


def test_kmeans_adds_up_in_one_order(rng, monkeypatch):
    """Three threads and more add their sums in the order in which they finish."""
    openmp = kmeans._openmp()
    X, seen = rng.random((30000, 20)), []

    def look(*_):
        seen.append({library.num_threads for library in openmp.lib_controllers})
        return [0]

    monkeypatch.setattr("sklearn.cluster.KMeans.fit_predict", look)
    for limit in (4, 1):
        with openmp.limit(limits=limit):
            cluster(X, 20)
            cluster(X[:100], 20)
    assert seen == [{2}, {1}, {1}, {1}]


def test_what_is_ignored_here_is_ignored_in_our_threads():
    F = np.full((1 << 12, 64), 1e30, dtype=np.float32)
    with np.errstate(over="ignore"), threads_for(*LARGE):
        squares = by_rows(lambda rows: F[rows] * F[rows], F)
    assert np.isinf(squares).all()


@pytest.mark.parametrize(("count", "step"), [(0, 3), (7, 3), (9, 3), (2, 5)])
def test_blocks_cover_everything_once(count, step):
    seen, sizes = np.zeros(count), []

    def work(block):
        seen[block] += 1
        sizes.append(block.stop - block.start)

    with threads_for(*LARGE):
        in_blocks(work, count, step)
    assert (seen == 1).all()
    assert max(sizes, default=0) <= step


def test_work_is_done_once_if_the_pool_is_shut_down():
    """As another thread of Python does that is interrupted; sweeps in place must not be made twice."""
    done = []
    threads._pool().shutdown()
    with threads_for(*LARGE):
        in_blocks(done.append, 7, 1)
    threads._pool.cache_clear()
    assert sorted(part.start for part in done) == list(range(7))


def test_an_error_in_any_part_is_raised():
    def work(part):
        if part.start == 6:
            raise KeyError

    with threads_for(*LARGE):
        with pytest.raises(KeyError):
            in_blocks(work, 7, 1)
        in_blocks(lambda part: None, 7, 1)


INTERRUPTED = """
import concurrent.futures.thread as executors
from lognmf.clustering import kmeans
from lognmf.core import threads

class Unlucky(dict):
    def __setitem__(self, thread, queue):
        raise KeyboardInterrupt

executors._threads_queues = Unlucky()
threads.THREADS.set(2)
try:
    threads.in_blocks(lambda part: None, 4, 1)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interruption_while_a_thread_is_started():
    """The process ends: it waits for its threads, and one that the executor does not know would never end."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout == "interrupted\n"
