"""How long and how large: rows into hours, machines and bytes, by rates that were measured.

The defaults are those of all-MiniLM-L6-v2 in int8 on the machine of docs/results.md; give your own rates
(`gemel bench`, benchmarks/search.py, benchmarks/stores.py) for a table of your own. It is Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

ROWS = (10**6, 10**7, 10**8, 10**9, 10**10)
DAY_HOURS = 24.0
COLUMNS = (
    *("sentences", "encode, core-hours", "machines for a day", "index, core-hours", "on disk"),
    *("memory for search", "machines to search", "store", "all pairs, core-hours"),
)


@dataclass(frozen=True)
class Rates:
    """What one core does in a second, and what one row takes."""

    sentences: float
    pair_operations: float
    index_rows: float
    bytes_of_row: float
    bytes_of_graph: float  # that should be in memory when a graph is walked


@dataclass(frozen=True)
class Machine:
    """What is bought or rented."""

    cores: int
    memory_gb: float


def encode_hours(rows: int, rates: Rates) -> float:
    """Core-hours until every row has a vector."""
    return rows / rates.sentences / 3600


def pair_hours(rows: int, dim: int, rates: Rates) -> float:
    """Core-hours for all pairs above a threshold: a product and a sum for each half of the matrix."""
    return rows * (rows - 1.0) * dim / rates.pair_operations / 3600


def index_hours(rows: int, rates: Rates) -> float:
    """Core-hours of building the approximate index."""
    return rows / rates.index_rows / 3600


def machines_for(rows: int, rates: Rates, machine: Machine) -> tuple[int, int]:
    """How many encode all rows within a day, and how many hold the graph in memory."""
    by_time = -(-encode_hours(rows, rates) // (machine.cores * DAY_HOURS))
    by_memory = -(-rows * rates.bytes_of_graph // (machine.memory_gb * 0.8e9))
    return max(1, int(by_time)), max(1, int(by_memory))


def store_for(n_serving: int, rows: int) -> str:
    """Where so many rows are kept well."""
    if rows <= 10**7:
        return "folder, or PostgreSQL"
    return "PostgreSQL" if n_serving == 1 else f"Milvus cluster, or {n_serving} shards"


def shown_hours(hours: float) -> str:
    """Minutes, hours or years, as people say it."""
    if hours < 1:
        return f"{hours * 60:,.0f} min"
    return f"{hours:,.0f} h" if hours < 10 * 8766 else f"{hours / 8766:,.0f} years"


def shown_bytes(size: float) -> str:
    """In the unit that fits."""
    unit = next(unit for unit in (1e9, 1e12) if size < 1000 * unit or unit == 1e12)
    return f"{size / unit:,.1f} {'GB' if unit == 1e9 else 'TB'}"


def table(dim: int, rates: Rates, machine: Machine) -> str:
    """Markdown, one line for each number of rows."""
    lines = [
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    for rows in ROWS:
        encoding, serving = machines_for(rows, rates, machine)
        cells = [
            f"{rows:,}", shown_hours(encode_hours(rows, rates)), f"{encoding}",
            shown_hours(index_hours(rows, rates)),
            shown_bytes(rows * rates.bytes_of_row), shown_bytes(rows * rates.bytes_of_graph), f"{serving}",
            store_for(serving, rows), shown_hours(pair_hours(rows, dim, rates)),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


@click.command()
@click.option("--dim", default=384, show_default=True)
@click.option("--sentences", default=1_300.0, show_default=True, help="Encoded by a core in a second.")
@click.option("--pair-operations", default=2.4e12, show_default=True, help="A core's, at 0.9 and above.")
@click.option("--index-rows", default=1_600.0, show_default=True, help="Indexed by a core in a second.")
@click.option("--bytes-of-row", default=2_520.0, show_default=True, help="In a collection, with its index.")
@click.option("--bytes-of-graph", default=535.0, show_default=True, help="Of the index alone.")
@click.option("--cores", default=16, show_default=True, help="Of a machine.")
@click.option("--memory-gb", default=64.0, show_default=True, help="Of a machine.")
def main(dim: int, cores: int, memory_gb: float, **rates: float) -> None:
    """Print the table."""
    click.echo(table(dim, Rates(**rates), Machine(cores, memory_gb)))


if __name__ == "__main__":
    main()
