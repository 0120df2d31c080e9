"""The paper's tables (arXiv 1908.10084) as data: what a reproduction is laid beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STS_COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R", "average")
TRANSFER_COLUMNS = ("MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "average")


@dataclass(frozen=True)
class PaperRow:
    """One line of a table: its figures by column, and their standard deviations where the paper has them."""

    name: str
    figures: Mapping[str, float]
    spread: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: `unit` says what its figures are, `protocol` how they came about."""

    number: int
    title: str
    unit: str
    protocol: str
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]

    def row(self, name: str) -> PaperRow:
        """The line of this name."""
        return next(row for row in self.rows if row.name == name)


def _rows(columns: tuple[str, ...], lines: Mapping[str, tuple[float, ...]]) -> tuple[PaperRow, ...]:
    return tuple(PaperRow(name, dict(zip(columns, values, strict=True))) for name, values in lines.items())


def _with_spread(column: str, lines: Mapping[str, tuple[float, float]]) -> tuple[PaperRow, ...]:
    return tuple(PaperRow(name, {column: mean}, {column: sd}) for name, (mean, sd) in lines.items())


TABLE_1 = PaperTable(
    1,
    "Semantic textual similarity without training on it",
    "Spearman x 100",
    'cosine of the two vectors; all pairs of a year as one list ("all"); STS13 without SMT; test splits of '
    "STSb and SICK",
    STS_COLUMNS,
    _rows(
        STS_COLUMNS,
        {
            "GloVe average": (55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76, 61.32),
            "BERT average": (38.78, 57.98, 57.98, 63.15, 61.06, 46.35, 58.40, 54.81),
            "BERT [CLS]": (20.16, 30.01, 20.09, 36.88, 38.08, 16.50, 42.63, 29.19),
            "InferSent (GloVe)": (52.86, 66.75, 62.15, 72.77, 66.87, 68.03, 65.65, 65.01),
            "Universal Sentence Encoder": (64.49, 67.80, 64.61, 76.83, 73.18, 74.92, 76.69, 71.22),
            "SBERT-NLI-base": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91, 74.89),
            "SBERT-NLI-large": (72.27, 78.46, 74.90, 80.99, 76.25, 79.23, 73.75, 76.55),
            "SRoBERTa-NLI-base": (71.54, 72.49, 70.80, 78.74, 73.69, 77.77, 74.46, 74.21),
            "SRoBERTa-NLI-large": (74.53, 77.00, 73.18, 81.85, 76.82, 79.10, 74.29, 76.68),
        },
    ),
)

_STSB = "STSb"
TABLE_2 = PaperTable(
    2,
    "The STS benchmark, with and without training on it",
    "Spearman x 100 on the test split",
    "4 epochs on STSb's training split where a name says STSb, mean and standard deviation over seeds "
    "(the paper: 10)",
    (_STSB,),
    (
        *_rows(
            (_STSB,),
            {
                "GloVe average": (58.02,),
                "BERT average": (46.35,),
                "InferSent (GloVe)": (68.03,),
                "Universal Sentence Encoder": (74.92,),
                "SBERT-NLI-base": (77.03,),
                "SBERT-NLI-large": (79.23,),
            },
        ),
        *_with_spread(
            _STSB,
            {
                "BERT-STSb-base (cross-encoder)": (84.30, 0.76),
                "SBERT-STSb-base": (84.67, 0.19),
                "SRoBERTa-STSb-base": (84.92, 0.34),
                "BERT-STSb-large (cross-encoder)": (85.64, 0.81),
                "SBERT-STSb-large": (84.45, 0.43),
                "SRoBERTa-STSb-large": (85.02, 0.76),
                "BERT-NLI-STSb-base (cross-encoder)": (88.33, 0.19),
                "SBERT-NLI-STSb-base": (85.35, 0.17),
                "SRoBERTa-NLI-STSb-base": (84.79, 0.38),
                "BERT-NLI-STSb-large (cross-encoder)": (88.77, 0.46),
                "SBERT-NLI-STSb-large": (86.10, 0.13),
                "SRoBERTa-NLI-STSb-large": (86.15, 0.35),
            },
        ),
    ),
)

_AFS_COLUMNS = ("Pearson", "Spearman")
TABLE_3 = PaperTable(
    3,
    "Argument facet similarity",
    "correlation x 100",
    "6,000 pairs of arguments on three topics, scores 0 to 5; unsupervised, in ten folds, or trained on two "
    "topics and measured on the third",
    _AFS_COLUMNS,
    (
        *_rows(
            _AFS_COLUMNS,
            {
                "tf-idf": (46.77, 42.95),
                "GloVe average": (32.40, 34.00),
                "InferSent (GloVe)": (27.08, 26.63),
            },
        ),
        PaperRow("10-fold: SVR (Misra et al., 2016)", {"Pearson": 63.33}),
        *_rows(
            _AFS_COLUMNS,
            {
                "10-fold: BERT-AFS-base (cross-encoder)": (77.20, 74.84),
                "10-fold: SBERT-AFS-base": (76.57, 74.13),
                "10-fold: BERT-AFS-large (cross-encoder)": (78.68, 76.38),
                "10-fold: SBERT-AFS-large": (77.85, 75.93),
                "cross-topic: BERT-AFS-base (cross-encoder)": (58.49, 57.23),
                "cross-topic: SBERT-AFS-base": (52.34, 50.65),
                "cross-topic: BERT-AFS-large (cross-encoder)": (62.02, 60.34),
                "cross-topic: SBERT-AFS-large": (53.82, 53.10),
            },
        ),
    ),
)

_ACCURACY = "accuracy"
TABLE_4 = PaperTable(
    4,
    "Sections of Wikipedia articles: which sentence is from the same section?",
    "accuracy x 100",
    "triplets of sentences; the one from the same section must be nearer (euclidean distance); 222,957 test "
    "triplets",
    (_ACCURACY,),
    _rows(
        (_ACCURACY,),
        {
            "mean word vectors": (65.0,),
            "skip-thoughts-CS": (62.0,),
            "Dor et al., 2018": (74.0,),
            "SBERT-WikiSec-base": (80.42,),
            "SBERT-WikiSec-large": (80.78,),
            "SRoBERTa-WikiSec-base": (79.45,),
            "SRoBERTa-WikiSec-large": (79.73,),
        },
    ),
)

TABLE_5 = PaperTable(
    5,
    "SentEval: logistic regression on the vectors",
    "accuracy x 100",
    "SentEval's splits and folds; the paper by its torch classifier, here by its scikit-learn grid over C",
    TRANSFER_COLUMNS,
    _rows(
        TRANSFER_COLUMNS,
        {
            "GloVe average": (77.25, 78.30, 91.17, 87.85, 80.18, 83.0, 72.87, 81.52),
            "fastText average": (77.96, 79.23, 91.68, 87.81, 82.15, 83.6, 74.49, 82.42),
            "BERT average": (78.66, 86.25, 94.37, 88.66, 84.40, 92.8, 69.45, 84.94),
            "BERT [CLS]": (78.68, 84.85, 94.21, 88.23, 84.13, 91.4, 71.13, 84.66),
            "InferSent (GloVe)": (81.57, 86.54, 92.50, 90.38, 84.18, 88.2, 75.77, 85.59),
            "Universal Sentence Encoder": (80.09, 85.19, 93.98, 86.70, 86.38, 93.2, 70.14, 85.10),
            "SBERT-NLI-base": (83.64, 89.43, 94.39, 89.86, 88.96, 89.6, 76.00, 87.41),
            "SBERT-NLI-large": (84.88, 90.07, 94.52, 90.33, 90.66, 87.4, 75.94, 87.69),
        },
    ),
)

_ABLATION_COLUMNS = ("NLI", "STSb")
TABLE_6 = PaperTable(
    6,
    "Ablation: pooling, and what the classifier reads",
    "Spearman x 100 on STSb's dev split",
    "trained on NLI by softmax, or on STSb by cosine regression; the mean over seeds (the paper: 10)",
    _ABLATION_COLUMNS,
    (
        *_rows(
            _ABLATION_COLUMNS,
            {
                "pooling MEAN": (80.78, 87.44),
                "pooling MAX": (79.07, 69.92),
                "pooling CLS": (79.80, 86.62),
            },
        ),
        *_rows(
            ("NLI",),
            {
                "concatenation (u, v)": (66.04,),
                "concatenation (|u-v|)": (69.78,),
                "concatenation (u*v)": (70.54,),
                "concatenation (|u-v|, u*v)": (78.37,),
                "concatenation (u, v, u*v)": (77.44,),
                "concatenation (u, v, |u-v|)": (80.78,),
                "concatenation (u, v, |u-v|, u*v)": (80.44,),
            },
        ),
    ),
)

_SPEED_COLUMNS = ("CPU", "GPU")
TABLE_7 = PaperTable(
    7,
    "Speed",
    "sentences a second",
    "sentences of the STS benchmark; the paper on an i7-5820K and a V100; smart batching puts texts of like "
    "length together",
    _SPEED_COLUMNS,
    (
        PaperRow("GloVe average", {"CPU": 6469}),
        *_rows(
            _SPEED_COLUMNS,
            {
                "InferSent (GloVe)": (137, 1876),
                "Universal Sentence Encoder": (67, 1318),
                "SBERT-base, no smart batching": (44, 1378),
                "SBERT-base, smart batching": (83, 2042),
            },
        ),
    ),
)

TABLES = {table.number: table for table in (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7)}
