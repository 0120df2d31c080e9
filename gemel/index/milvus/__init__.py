"""Collections in Milvus: a server, a cluster, or a file of Milvus Lite's, by the same code.

What Milvus does not have, these do not have either:
- no transactions. A window of records is sent in one request, but a change is not all or nothing, and two
  writers of the same id may overtake each other. Adding again what was broken off brings everything in order.
- no order. `records()` and ties go by numbers that the clocks of the writers have given.
- filters of its own that differ from ours: what of a filter can be said in Milvus narrows the search, and the
  rest, `not` and null among it, is judged here from the metadata that comes back.
- Milvus Lite writes to its log before it answers, which a killed process survives; it does not wait for the
  disk, so a power cut may lose the last moments. It is one process's: others have to wait until it is closed.
"""
