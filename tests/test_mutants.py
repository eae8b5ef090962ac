"""Where `make mutants` puts no faults."""

from mutants import left_out, not_binary

SOURCE = """BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True, slots=True)
class Thing:
    size: int | None = 1

    def grow(self, by: float = 2.0) -> float | None:
        if by < 0:
            msg = f"by must be at least {0}; got " + str(by - 1)
            raise ValueError(msg, 7)
        é = "é"; return (self.size + by) if é else field(repr=False, more=3)

    def cut(self):
        step = max(5, BLOCK_NUMBERS // 9)

    def __repr__(self):
        return str(4 + 4)
"""


def test_messages_annotations_decorators_and_printing_are_left_alone():
    places = left_out(SOURCE)

    def silent(text):
        before, _, _ = SOURCE.partition(text)
        at = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
        return any(first <= at < last for first, last in places)

    for text in ("True", "| None =", "| None:", "+ str", "- 1", "7", "False", "4 + 4", "<< 20", "// 9"):
        assert silent(text), text
    for text in ("1\n", "2.0", "< 0", "+ by", "3)"):
        assert not silent(text), text


def test_stars_of_unpackings_are_no_operators():
    for line in ("f(*rest)", "{**settings}", "    *more,", "g(a, **options)", "def f(x, /)", "def f(*, x)"):
        at = next(i for i, letter in enumerate(line) if letter in "*/")
        assert not_binary(line, at, at + 1 + (line[at : at + 2] == "**")), line
    for line in ("a * b", "x**2", "    / total", "f(a)*b"):
        at = next(i for i, letter in enumerate(line) if letter in "*/")
        assert not not_binary(line, at, at + 1 + (line[at : at + 2] == "**")), line
