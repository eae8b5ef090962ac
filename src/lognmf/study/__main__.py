"""``python -m lognmf.study``: the rows of ``lognmf reproduce``, without the packages of its screen."""

import argparse
import sys

from lognmf.study.paper import DATASETS
from lognmf.study.protocol import PRESETS
from lognmf.study.reproduce import reproduce


def main() -> int:
    """Compute rows; returns 1 if some failed."""
    parser = argparse.ArgumentParser(prog="python -m lognmf.study", description=__doc__)
    parser.add_argument("what", nargs="*", default=["all"], help="as for lognmf reproduce")
    parser.add_argument("--out", required=True, help="folder of the store")
    parser.add_argument("--preset", default="paper", choices=list(PRESETS))
    parser.add_argument("--datasets", type=lambda text: text.split(","), help=",".join(DATASETS).lower())
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--executor", default="processes")
    parser.add_argument("--time-limit", type=float, help="seconds")
    parser.add_argument("--merge", nargs="*", default=[], help="stores of other runs")
    given = parser.parse_args()
    report = reproduce(
        given.what or ["all"],
        given.out,
        preset=given.preset,
        data=given.datasets,
        device=given.device,
        executor=given.executor,
        jobs=given.jobs,
        limit=given.time_limit,
        merge=given.merge,
        pages=False,
    )
    print(f"{report.done} done, {report.failed} failed, {report.left} left, {report.seconds:.0f} s")  # noqa: T201
    return int(report.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
