"""Readers of official files, by the name of the layout: what was published becomes gemel's own tables."""

from __future__ import annotations

from functools import partial

from gemel.data.official.inference import all_nli, gold_labelled, joined, klue_nli, xnli
from gemel.data.official.pairs import captions, paws, pawsx, quora, wikipedia_sections
from gemel.data.official.parts import Reader
from gemel.data.official.retrieval import beir
from gemel.data.official.similarity import (
    SEMEVAL_FILES,
    argument_facets,
    klue_sts,
    korean_sts,
    semeval,
    sick,
    sts_benchmark,
    translated_sts,
)
from gemel.data.official.transfer import (
    banking_intents,
    msr_paraphrases,
    news_topics,
    question_types,
    sst_binary,
    sst_fine,
    two_files,
)
from gemel.errors import InvalidInput

STSB_LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")

READERS: dict[str, Reader] = {
    **{name: semeval(name) for name in SEMEVAL_FILES},
    "stsb": sts_benchmark,
    "sick": sick,
    "korsts": korean_sts,
    "klue_sts": klue_sts,
    "stsb_multi_mt": partial(translated_sts, languages=STSB_LANGUAGES),
    "afs": argument_facets,
    "snli": gold_labelled({split: f"snli_1.0_{split}" for split in ("train", "dev", "test")}),
    "mnli": gold_labelled(
        {split: f"multinli_1.0_{split}" for split in ("train", "dev_matched", "dev_mismatched")}
    ),
    "allnli": all_nli,
    "xnli": xnli,
    "kornli": gold_labelled({f"{split}_xnli_ko": f"xnli.{split}.ko" for split in ("dev", "test")}),
    "kornli_train": joined("train", ("snli_1.0_train.ko.tsv", "multinli.train.ko.tsv")),
    "klue_nli": klue_nli,
    "mr": two_files("MR", "rt10662", {"rt-polarity.pos": "1", "rt-polarity.neg": "0"}),
    "cr": two_files("CR", "customerr", {"custrev.pos": "1", "custrev.neg": "0"}),
    "subj": two_files("SUBJ", "subj", {"subj.objective": "0", "subj.subjective": "1"}),
    "mpqa": two_files("MPQA", "mpqa", {"mpqa.pos": "1", "mpqa.neg": "0"}),
    "sst2": sst_binary,
    "sst5": sst_fine,
    "trec": question_types,
    "mrpc": msr_paraphrases,
    "banking77": banking_intents,
    "ag_news": news_topics,
    "quora": quora,
    "paws": paws,
    "pawsx": pawsx,
    "multi30k_captions": captions,
    "wikipedia_sections": wikipedia_sections,
}


def reader_of(layout: str) -> Reader:
    """The reader of a layout; `beir/NAME` is BEIR's, in a folder of that name."""
    if layout.startswith("beir/"):
        return beir(layout.removeprefix("beir/"))
    if layout not in READERS:
        raise InvalidInput(f"the layout {layout!r} is unknown; expected one of {', '.join(READERS)}")
    return READERS[layout]
