"""`gemel serve`: the models over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from gemel.cli import options
from gemel.errors import MissingExtra


def _limit(name: str, says: str) -> Callable[[options.Command], options.Command]:
    return click.option(f"--{name.replace('_', '-')}", name, type=click.IntRange(1), default=None, help=says)


@click.command("serve")
@options.model
@click.option("--reranker", metavar="NAME", help="A cross-encoder for /rerank: a folder or a hub name.")
@click.option(
    "--classifier", metavar="FOLDER", help="A softmax model for /v1/classify.  [default: the model's own]"
)
@click.option(
    "--collections", metavar="FOLDER", help="Where collections are kept, to be searched and changed."
)
@click.option("--store", metavar="ADDRESS", help="The same on a server: postgresql://..., milvus:...")
@click.option("--alias", "aliases", multiple=True, help="Another name that requests may call the model by.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free."
)
@click.option("--key-file", metavar="FILE", help="API keys, one a line: KEY, or KEY read.")
@click.option("--allow-anyone", is_flag=True, help="Let other machines in without a key.")
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, help="A name that requests may address; * for any."
)
@click.option(
    "--cors-origin", "cors_origins", multiple=True, help="An origin whose pages may use the server."
)
@_limit("max_body_bytes", "Of one request.")
@_limit("max_inputs", "Texts or pairs of one request.")
@_limit("max_request_tokens", "Of one request.")
@_limit("max_queue_tokens", "Of large requests that wait; more are told to come again.")
@_limit("max_interactive_tokens", "Of small requests that wait.")
@_limit("max_concurrent_requests", "That are answered at once.")
@click.option("--timeout-seconds", type=click.FloatRange(0.001), default=None, help="For a request's answer.")
@click.option("--body-timeout-seconds", type=click.FloatRange(0.001), help="For a request to arrive.")
@click.option(
    "--refuse-long", is_flag=True, help="Refuse texts longer than the model reads, unless truncate is sent."
)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@options.compute
def command(**given: Any) -> None:
    """Answer requests for embeddings, search, similarity and re-ranking over HTTP, and show a page.

    With neither --model, --collections nor --store there is something to look at: the default model, and a
    collection of Python's own documentation, which is made once and kept in the user's cache.

    Speaks the languages of OpenAI's, text-embeddings-inference's, Cohere's and Jina's clients. Keys may also
    stand in the environment variable GEMEL_API_KEYS, separated by commas. SIGTERM stops after the last
    answer; SIGHUP loads the models anew.

    \b
    Examples:
      gemel serve
      gemel serve --collections ./collections
      gemel serve --store postgresql://me@localhost/texts
      gemel serve -m ./my-model --reranker cross-encoder/ms-marco-MiniLM-L6-v2 --port 3000
      curl -s localhost:8080/v1/embeddings -H 'content-type: application/json' -d '{"input": "A man eats."}'
    """
    try:
        from gemel.serve.keys import Keys
        from gemel.serve.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("gemel"):
            raise
        raise MissingExtra("the server", "serve") from None

    keys = Keys.read(given.pop("key_file"), os.environ.get("GEMEL_API_KEYS"))
    log_level = given.pop("log_level")
    settings = _settings(given)
    click.echo("gemel: opening the model", err=True)
    serve(
        settings,
        keys,
        log_level=log_level,
        on_ready=lambda port: click.echo(
            f"gemel: open {_address(settings.host, port)} in a browser", err=True
        ),
        on_demo=lambda n: click.echo(
            f"gemel: making a collection of {n:,} sentences of Python's documentation, once", err=True
        ),
    )


def _address(host: str, port: int) -> str:
    """What to click on: an address that a browser on this machine can open."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(host, host)
    return f"http://{shown}:{port}/"


def _settings(given: dict[str, Any]) -> Any:
    """The options as the server's settings; limits that were not given keep their defaults."""
    from dataclasses import fields

    from gemel.serve.demo import demo_folder
    from gemel.serve.settings import Limits, ModelChoice, ServeSettings

    limits = {limit.name: given[limit.name] for limit in fields(Limits) if given.get(limit.name) is not None}
    models = ModelChoice(
        encoder=given["model"],
        reranker=given["reranker"],
        classifier=given["classifier"],
        aliases=given["aliases"],
        precision=given["precision"],
        device=given["device"],
        threads=given["threads"],
    )
    if given["collections"] is not None and given["store"] is not None:
        raise click.UsageError("--collections FOLDER and --store ADDRESS: give one of them")
    has_demo = given["model"] is None and given["collections"] is None and given["store"] is None
    return ServeSettings(
        host=given["host"],
        port=given["port"],
        models=models,
        collections=str(demo_folder()) if has_demo else given["collections"],
        store=given["store"],
        has_demo=has_demo,
        limits=Limits(**limits),
        allowed_hosts=given["allowed_hosts"],
        cors_origins=given["cors_origins"],
        allows_anyone=given["allow_anyone"],
        auto_truncate=not given["refuse_long"],
    )
