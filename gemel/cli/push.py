"""`gemel push`: a model folder to the hub."""

from __future__ import annotations

import json

import click


@click.command("push")
@click.argument("folder", metavar="FOLDER")
@click.argument("name", metavar="OWNER/NAME")
@click.option("--public", is_flag=True, help="Let everyone see a new repository.  [default: private]")
@click.option("--revision", metavar="BRANCH", help="The branch to write to.  [default: main]")
@click.option("--message", metavar="TEXT", help="What the commit says.")
@click.option("--dry-run", is_flag=True, help="Show the files that would be sent, and stop.")
def command(
    folder: str, name: str, public: bool, revision: str | None, message: str | None, dry_run: bool
) -> None:
    """Send a model FOLDER to the Hugging Face hub.

    The folder is read first, as loading it would; pickles and hidden files stay here. A new repository is
    private unless --public is given; one that is there already stays as it is. The token is the one that
    `hf auth login` has kept, or HF_TOKEN.

    \b
    Examples:
      gemel push out/mine/model ada/my-encoder --dry-run
      gemel push out/mine/model ada/my-encoder --public
    """
    from gemel.publishing import files_of, push

    if dry_run:
        for file in files_of(folder, name):
            click.echo(json.dumps({"file": str(file), "bytes": file.stat().st_size}))
        return
    published = push(folder, name, public=public, revision=revision, message=message)
    click.echo(json.dumps(published.to_dict()))
