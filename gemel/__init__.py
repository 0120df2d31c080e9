"""gemel."""
