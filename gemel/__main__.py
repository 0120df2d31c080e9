"""`python -m gemel`: the command, for programs that start modules, as torchrun does."""

from gemel.cli import main

if __name__ == "__main__":
    main()
