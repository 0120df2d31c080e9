"""`gemel convert`: a safe copy of a model folder."""

from __future__ import annotations

import json

import click


@click.command("convert")
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace TARGET if it exists.")
def command(source: str, target: str, overwrite: bool) -> None:
    """Copy the model folder SOURCE to TARGET with its weights as safetensors.

    Pickled weights (pytorch_model.bin) can run code when they are opened. They are read here by a reader
    that knows tensors only. A missing tokenizer.json is made as well.

    \b
    Examples:
      gemel convert old-model new-model
    """
    from gemel.model.convert import convert

    converted = convert(source, target, overwrite=overwrite)
    click.echo(json.dumps({"source": source, "target": target, "converted": converted}))
