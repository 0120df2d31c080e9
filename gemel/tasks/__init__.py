"""What embeddings are used for, one module a task."""
