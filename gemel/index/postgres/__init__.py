"""Collections in PostgreSQL with pgvector: one schema a collection, whose commit is the truth about it."""
