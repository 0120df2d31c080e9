"""Paraphrases, captions of one image, triplets."""

from __future__ import annotations

from gemel.data.catalogue.entry import HUB, REPOSITORY, TFDS, DataFile, DataSet, Download

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task2/raw"

PARAPHRASES = (
    DataSet(
        "quora",
        "paraphrase",
        "Quora question pairs: duplicates or not",
        "Quora terms of service",
        (DataFile("all.tsv.gz"),),
        (
            Download(
                "http://qim.fs.quoracdn.net/quora_duplicate_questions.tsv",
                58_176_133,
                "b3350dbb1d98db1f5abca85d736ba514bf4da253fae53939303d79fe921ec7c8",
                HUB,
            ),
        ),
        layout="quora",
        page="https://quoradata.quora.com/First-Quora-Dataset-Release-Question-Pairs",
    ),
    DataSet(
        "quora_pairs_sample",
        "paraphrase",
        "A sample of Quora question pairs: duplicates or not",
        "Quora terms of service",
        (DataFile("sample.tsv", 6_493, "1683886a738a4ba7799aad314014dc1fc9687b3c18c7e74f7aec64c6964f51be"),),
        obstacle="it is a sample that nobody publishes as such; quora has all pairs",
    ),
    DataSet(
        "quora_duplicates_positive",
        "paraphrase",
        "Duplicate questions of Quora, lower-cased and tokenised",
        "Quora terms of service",
        (DataFile("all.tsv.gz", 85_291, "8a17baebc69990e40c7a3a9bc93f60985edd6944d73ca0c54db78d01f0dde564"),),
        obstacle="it was derived from Quora pairs, and nobody publishes it as such; quora has all pairs",
    ),
    DataSet(
        "paws",
        "paraphrase",
        "PAWS-Wiki, labelled: pairs with the same words, paraphrases (1) or not (0)",
        "any use, with acknowledgement of Google",
        (
            DataFile("train.tsv.gz", 49_401),
            DataFile("dev.tsv", 8_000),
            DataFile("test.tsv", 8_000),
        ),
        (
            Download(
                "https://storage.googleapis.com/paws/english/paws_wiki_labeled_final.tar.gz",
                4_687_157,
                "1aad6cbb8a90b15563a0c154752c2b2c8e3bc5bdaa125172214d598bc76bc9fd",
                TFDS,
            ),
        ),
        layout="paws",
        page="https://github.com/google-research-datasets/paws",
    ),
    DataSet(
        "paws_wiki_sample",
        "paraphrase",
        "A sample of PAWS-Wiki",
        "any use, with acknowledgement of Google",
        (DataFile("sample.tsv", 6_488, "b70633b25d09350abec5a34829741462d58c6f16bea5c9d7b8b7e0fb6a87e4ba"),),
        obstacle="it is a sample that nobody publishes as such; paws has all pairs",
    ),
    DataSet(
        "multi30k_captions",
        "captions",
        "Five English captions of each image of Flickr30K",
        "non-commercial research and education",
        (
            DataFile(
                "train.tsv.gz", 29_000, "0b7f8b49c44effc63a1140c59b066b56325a8c2c1448818d5ec2cdd50a731ede"
            ),
            DataFile("val.tsv", 1_014, "b970edc3aaecc640c168657c336edbf0189f6e9d719c697c8d32f2881095d817"),
        ),
        (
            Download(
                f"{_MULTI30K}/train.1.en.gz",
                867_789,
                "a0e057f07a9733199c0d755d77f6d583dc6f40a3180734b1130a216e2fdf3a3b",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/train.2.en.gz",
                666_845,
                "d79dd70a9eafb2d1fe40151621278c4ae69b3c148c5052a53d7c7a41bf3ba023",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/train.3.en.gz",
                555_423,
                "86e16fdcc699bcb6bca0f87c3cf1051f7de5ee3674dd588cedc5200194282749",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/train.4.en.gz",
                465_845,
                "3771b84e010ad6197806d2a1188cb07c12149e3e0d178dd5966dee5763733686",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/train.5.en.gz",
                375_613,
                "73988689307fe836994eae59735dc840c15da9775455fa76e6ed22606a042a91",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/val.1.en.gz",
                32_603,
                "4ce8f8ffbef4a1c066e3f35a5ffc764666c26c318a733d9bdc6349577f1c6f9c",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/val.2.en.gz",
                25_187,
                "4103944d652127e5af33ba2761d71cb6c0e1509c1a67d4387dc67ad768cfb752",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/val.3.en.gz",
                21_098,
                "6ecd848713d98faa9c6db2e9e457a778335358e6e3a4743cf4e929a0516e399a",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/val.4.en.gz",
                18_091,
                "bfab4f0cbdac6233f206bbbfbd324dc02b258e291c3f410a69f9884171008788",
                REPOSITORY,
            ),
            Download(
                f"{_MULTI30K}/val.5.en.gz",
                14_799,
                "4b6a6541b7b58d545eff7feead4187aeb0439a7178a7bed6951121e0ecbaee66",
                REPOSITORY,
            ),
        ),
        layout="multi30k_captions",
        page="https://github.com/multi30k/dataset",
    ),
    DataSet(
        "wikipedia_sections",
        "triplets",
        "Sentences of the same section of an article, and one of another section",
        "CC BY-SA 3.0, text of Wikipedia",
        (DataFile("train.tsv.gz"), DataFile("dev.tsv.gz"), DataFile("test.tsv.gz", 222_957)),
        (Download("https://sbert.net/datasets/wikipedia-sections-triplets.zip"),),
        layout="wikipedia_sections",
        page="https://aclanthology.org/P18-2009",
    ),
)
