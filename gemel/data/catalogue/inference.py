"""Pairs that entail, contradict or neither."""

from __future__ import annotations

from gemel.data.catalogue.entry import TFDS, TOKENISED, DataFile, DataSet, Download

INFERENCE = (
    DataSet(
        "snli",
        "nli",
        "Stanford NLI: captions and what was written about them",
        "CC BY-SA 4.0",
        (
            DataFile("train.tsv.gz", 549_367),
            DataFile(
                "dev.tsv",
                9_842,
                "cd5fa9a5e8c20f370185cc8e8f78f1db02792a8151a58f24dc265a501b21f9a6",
                (("6d30a61d2197b249fe98cca40c5fbfd3f389106bbb21c52d55dd5a8067a741ad", TOKENISED),),
            ),
            DataFile(
                "test.tsv",
                9_824,
                None,
                (("8839753bd92ec00959bb80f52fab24ca72570347155670ccf6c2010c263afdee", TOKENISED),),
            ),
        ),
        (
            Download(
                "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
                94_550_081,
                "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
                TFDS,
            ),
        ),
        layout="snli",
        page="https://nlp.stanford.edu/projects/snli",
    ),
    DataSet(
        "mnli",
        "nli",
        "MultiNLI: ten genres of English; its test labels are not public",
        "OANC licence; fiction under several permissive ones",
        (
            DataFile("train.tsv.gz", 392_702),
            DataFile(
                "dev_matched.tsv", 9_815, "84bba9b7ae558fae3ebd0dac265b52af884609711f2956c1132fead05e0a2ba9"
            ),
            DataFile("dev_mismatched.tsv", 9_832),
        ),
        (
            Download(
                "https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip",
                226_850_426,
                "049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
                TFDS,
            ),
        ),
        layout="mnli",
        page="https://cims.nyu.edu/~sbowman/multinli",
    ),
    DataSet(
        "allnli",
        "nli",
        "SNLI and MultiNLI in one file, as Sentence-BERT was trained",
        "as SNLI and MultiNLI",
        (
            DataFile("train.tsv.gz", 942_069),
            DataFile("dev.tsv.gz", 19_657),
            DataFile("test.tsv.gz", 19_656),
        ),
        (Download("https://sbert.net/datasets/AllNLI.tsv.gz"),),
        layout="allnli",
        page="https://sbert.net",
    ),
    DataSet(
        "nli_mix",
        "nli",
        "SNLI, MultiNLI and smaller sets in part, without repeats; triplets made of them",
        "CC BY-SA 4.0, OANC, and CC BY-NC-SA 3.0 for source=sick",
        (
            DataFile(
                "train.tsv.gz", 234_427, "da2fe0965594400b81e753ea8dcb9a8ca4de2af1ce0080f429e66cb0ff81b28d"
            ),
            DataFile(
                "triplets.tsv.gz", 45_659, "a215b94a9aa16ce8fa93c2fcb3e4b486264da6899183613d194c7d568967c604"
            ),
        ),
        obstacle="it was merged from several sets, and nobody publishes the merged one",
    ),
)
