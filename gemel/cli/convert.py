"""`gemel convert`: a safe copy of a model folder."""

from __future__ import annotations

import json

import click

from gemel.errors import InvalidInput


@click.command("convert")
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace TARGET if it exists.")
def command(source: str, target: str, overwrite: bool) -> None:
    """Copy the model folder SOURCE to TARGET with its weights as safetensors.

    Pickled weights (pytorch_model.bin) can run code when they are opened. They are read here by a reader
    that knows tensors only. A missing tokenizer.json is made as well. Word vectors become a folder that opens
    at once, without reading gigabytes of text again.

    \b
    Examples:
      gemel convert old-model new-model
      gemel convert glove:glove.840B.300d.zip glove-840b
    """
    from gemel.encoders import StaticEncoder, named_encoder

    named = named_encoder(source)
    if named is None:
        from gemel.model.convert import convert

        converted = convert(source, target, overwrite=overwrite)
    else:
        encoder = named.open()
        if not isinstance(encoder, StaticEncoder):
            raise InvalidInput(f"{source} cannot be written to a folder; word vectors can, as glove:FILE")
        encoder.save(target, overwrite=overwrite)
        converted = ["model.safetensors", "tokenizer.json"]
    click.echo(json.dumps({"source": source, "target": target, "converted": converted}))
