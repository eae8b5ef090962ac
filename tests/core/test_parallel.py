"""One thread of BLAS for small problems, and the old number afterwards."""

import multiprocessing
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from lognmf import PlainNMF, cluster
from lognmf.core import parallel
from lognmf.core.arrays import gram, product, product_t
from lognmf.core.parallel import SHARED_PRODUCTS, by_rows, limited, shared_out, threads_for


def numbers():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = numbers()
    parallel._set_blas(dict.fromkeys(libraries, 2))
    if set(numbers()) != {2}:
        pytest.skip("this BLAS cannot be given two threads")
    yield
    parallel._set_blas(dict(zip(libraries, before, strict=True)))


SMALL = np.ones((1 << 11, 1 << 11)), 1
LARGE = np.ones((1 << 11, 1 << 11)), 2
WIDE = np.ones((1 << 11, 1 << 11)), 32


def test_small_problems_have_one():
    with threads_for(*SMALL):
        assert set(numbers()) == {1}
        assert not SHARED_PRODUCTS.get()
    assert set(numbers()) == {2}


@pytest.mark.parametrize(("X", "columns"), [LARGE, (sp.csr_array(WIDE[0]), 32)])
def test_others_share_with_our_threads(X, columns):
    """Those of BLAS spin, and wait for ever where other programs use the cores."""
    with threads_for(X, columns):
        assert set(numbers()) == {1}
        assert SHARED_PRODUCTS.get()
    assert set(numbers()) == {2}


def test_parts_of_equal_work():
    ends, parts = np.array([0, 0, 90, 95, 100, 100]), []
    shared_out(parts.append, 5, ends)
    assert sorted((own.start, own.stop) for own in parts) == [(0, 2), (2, 5)]


def test_wide_products_are_shared_out(rng):
    """By us: BLAS has one thread. The same numbers, and in our threads nothing is shared out again."""
    F, G = rng.random((1 << 11, 4, 8)), rng.random((1 << 11, 4, 8))
    X = rng.random((1 << 11, 1 << 11))
    expected = product(X, F), product_t(X, G), gram(F, G)
    with threads_for(X, 32):
        assert SHARED_PRODUCTS.get()
        assert set(numbers()) == {1}
        found = product(X, F), product_t(X, G)
        found += (gram(F, G),)
        many = np.ones((1 << 14, 4, 8))
        inside = by_rows(lambda rows: np.full_like(many[rows], SHARED_PRODUCTS.get()), many)
    assert not SHARED_PRODUCTS.get()
    assert not inside[-1].any()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("allowed", "used"), [("1", 1), ("2", 2), ("9", 2), ("0", 1), ("", 2), ("two", 2), (None, 2)]
)
def test_our_threads_heed_what_blas_does(monkeypatch, allowed, used):
    if allowed is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert parallel.own_threads() == used
    with threads_for(*WIDE):
        assert SHARED_PRODUCTS.get() == (used > 1)


def test_tensors_are_left_alone():
    torch = pytest.importorskip("torch")
    with threads_for(torch.ones((4, 4)), 1):
        assert set(numbers()) == {2}


def test_an_error_gives_them_back():
    with pytest.raises(KeyError), threads_for(*WIDE):
        raise KeyError
    assert set(numbers()) == {2}
    assert not SHARED_PRODUCTS.get()


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

        with limited(), parallel._LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
        process.join(60)
        assert process.exitcode == 0
        assert set(queue.get()) == {1}
        assert set(queue.get()) == {2}


def openmp_threads():
    return {library.num_threads for library in parallel._libraries("openmp").lib_controllers}


def test_openmp_has_no_more_than_before():
    with limited(openmp=1), limited(openmp=2):
        assert openmp_threads() <= {1}


def test_kmeans_adds_up_in_one_order(rng, monkeypatch):
    """Three threads and more add their sums in the order in which they finish."""
    X, seen = rng.random((30000, 20)), []
    monkeypatch.setattr("sklearn.cluster.KMeans.fit_predict", lambda *_: seen.append(openmp_threads()) or [0])
    with parallel._libraries("openmp").limit(limits=4):
        cluster(X, 20)
        cluster(X[:100], 20)
    assert seen == [{2}, {1}]


def test_what_is_ignored_here_is_ignored_in_our_threads():
    F = np.full((1 << 12, 64), 1e30, dtype=np.float32)
    with np.errstate(over="ignore"):
        squares = by_rows(lambda rows: F[rows] * F[rows], F)
    assert np.isinf(squares).all()


@pytest.mark.parametrize(("count", "step"), [(0, 3), (7, 3), (9, 3), (2, 5)])
def test_blocks_cover_everything_once(count, step):
    seen, sizes = np.zeros(count), []

    def work(own):
        seen[own] += 1
        sizes.append(own.stop - own.start)

    parallel.in_blocks(work, count, step)
    assert (seen == 1).all()
    assert max(sizes, default=0) <= step


def test_each_part_is_done_once_if_the_workers_are_shut_down(monkeypatch):
    """As another thread of Python does that is interrupted; sweeps in place must not be made twice."""
    begin, places, done = parallel._begun, iter(range(10)), []

    def begun(workers, work, part):
        if next(places) == 3:
            workers.shutdown(wait=False)
        return begin(workers, work, part)

    monkeypatch.setattr(parallel, "_begun", begun)
    parallel._in_threads(done.append, range(7))
    parallel._workers.cache_clear()
    assert sorted(done) == list(range(7))


INTERRUPTED = """
import concurrent.futures.thread as executors
from lognmf.core import parallel

class Unlucky(dict):
    def __setitem__(self, thread, queue):
        raise KeyboardInterrupt

executors._threads_queues = Unlucky()
try:
    parallel._in_threads(lambda part: None, range(4))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interruption_while_a_thread_is_started():
    """The process ends: it waits for its threads, and one that the executor does not know would never end."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout == "interrupted\n"
