"""Help texts: options in groups, examples at the end, no line over 80 columns."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

GROUPS = ("Data", "Model", "Methods", "Fit", "Run", "Results", "Other")
"""Groups of options, in their order."""

EXAMPLES = {
    "fit": """
        lognmf fit digits -k 10                      the simplest call
        lognmf fit table.csv -k auto                 choose the number of parts
        lognmf fit table.csv -k 5 --index id --labels kind --scale-features max
        lognmf fit cells.h5ad -k 12 --scale-features log1p
        lognmf fit faces/ -k 20 --resize 32x32 --model ls-nmf --lam 1
        lognmf fit digits -k 10 --tune               weights for clusters
    """,
    "cluster": """
        lognmf cluster digits -k 10
        lognmf cluster table.csv -k auto --labels kind
        lognmf cluster words.npz -k 5 --scale-features tfidf
        lognmf cluster faces/ -k 15 --resize 32x32
    """,
    "transform": """
        lognmf transform results/table-rls-nmf new.csv
        lognmf transform results/table-rls-nmf new.csv --out codes.csv
    """,
    "predict": """
        lognmf predict results/table-clusters new.csv
    """,
    "plot": """
        lognmf plot results/digits-rls-nmf
        lognmf plot results/digits-rls-nmf --what parts --out parts.pdf
        lognmf plot model.npz --what convergence
    """,
    "compare": """
        lognmf compare digits
        lognmf compare table.csv --labels kind --models nmf,ls-nmf,rls-nmf
        lognmf compare faces/ -k 15 --resize 32x32 --seeds 10
    """,
    "reproduce": """
        lognmf reproduce all --preset quick
        lognmf reproduce table5 --datasets yale,orl --jobs 4
    """,
    "list": "lognmf data list",
    "info": "lognmf data info yale",
    "fetch": "lognmf data fetch yale orl",
    "show": """
        lognmf data show yale --per-class 5
        lognmf data show faces/ --resize 32x32 --out faces.pdf
    """,
}
"""Examples of the commands, by their names."""


_KINDS = {"<str>": "NAME", "<int>": "N", "<int range>": "N", "<float>": "NUMBER"}
_HYPHEN = "\u2011"
"""Where no line breaks; it becomes a plain hyphen at the end."""


class HelpfulCommand(TyperCommand):
    """A command whose help has its options in groups, and examples."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write how the command is called: what it needs comes first."""
        needed = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        names = [str(p.metavar) if p.required else f"[{p.metavar}]" for p in needed]
        formatter.write_usage(ctx.command_path, " ".join([*names, "[OPTIONS]"]))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                names = str(parameter.metavar) if parameter.param_type_name == "argument" else record[0]
                groups[group_of(parameter)].append((_plain(names), _unbroken(record[1])))
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records, col_max=26)
        formatter.buffer[:] = [text.replace(_HYPHEN, "-") for text in formatter.buffer]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line in EXAMPLES[str(self.name)].strip().splitlines():
                formatter.write(f"  {line.strip()}\n")


def group_of(parameter: Any) -> str:
    """The group of an option; that of typer's own, and of any without one, is the last."""
    return getattr(parameter, "rich_help_panel", None) or GROUPS[-1]


def _plain(names: str) -> str:
    """Names of an option, with words for the types of its values."""
    for kind, word in _KINDS.items():
        names = names.replace(kind, word)
    return names


def _unbroken(text: str) -> str:
    """The help of an option, which is not to be broken at hyphens."""
    return text.replace("[default: (", "[default: ").replace(")]", "]").replace("-", _HYPHEN)


def option(group: str, *names: str, **more: Any) -> Any:
    """An option of a group."""
    return typer.Option(*names, rich_help_panel=group, **more)
