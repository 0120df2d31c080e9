"""One process that speaks every client's language: embeddings, similarity and re-ranking over HTTP."""
