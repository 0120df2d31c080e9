"""gemel inside other people's stacks: one module a framework, each of which needs that framework alone."""
