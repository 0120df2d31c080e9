"""Texts with classes: SentEval's transfer tasks, intents, topics."""

from __future__ import annotations

from gemel.data.catalogue.entry import HUB, REPOSITORY, TFDS, TOKENISED, DataFile, DataSet, Download

# One archive holds four sets; SentEval's script splits its words, and so does the reader.
_SMALL_SETS = (Download("https://dl.fbaipublicfiles.com/senteval/senteval_data/datasmall_NB_ACL12.zip"),)

TRANSFER = (
    DataSet(
        "mr",
        "classification",
        "Movie reviews: positive (1) or negative (0), tokenised as in SentEval",
        "not stated",
        (DataFile("all.tsv", 10_662, "909e7cc4ce2284e7cd84967c99df13738085648eb43f845dc3ca9497d793d61e"),),
        _SMALL_SETS,
        layout="mr",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "cr",
        "classification",
        "Customer reviews: positive (1) or negative (0), tokenised as in SentEval",
        "not stated",
        (DataFile("all.tsv", 3_771, "9767ca626328bae56c89f98266b4bcc11d8a8cca7f8257ef17057823d13fbfcd"),),
        _SMALL_SETS,
        layout="cr",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "subj",
        "classification",
        "Subjective (1) or objective (0) sentences on films, tokenised as in SentEval",
        "not stated",
        (DataFile("all.tsv", 10_000, "dfb26aee5b8b7d786c6461702aa672297e65fb1bd190d3c2bc2dcfa74b6510f6"),),
        _SMALL_SETS,
        layout="subj",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "mpqa",
        "classification",
        "Opinion phrases: positive (1) or negative (0), tokenised as in SentEval",
        "not stated",
        (DataFile("all.tsv", 10_603, "fb745ff71a6e188edb642697f8ac505d37de51b3b48e8f6df70b396971f1105c"),),
        _SMALL_SETS,
        layout="mpqa",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "sst2",
        "classification",
        "Stanford Sentiment Treebank: sentences and phrases, positive (1) or negative (0)",
        "not stated",
        (
            DataFile(
                "train.tsv.gz", 67_349, "067bc3996295ac3f973e379e1b15eae0b01f7fe5d50d78235ac127d38c8b3a11"
            ),
            DataFile("dev.tsv", 872, "d0d3bad3693e30697f65bf9bfc148ebdbf641d2029de06142b37733a0b956da4"),
            DataFile("test.tsv", 1_821, "870bd36ac29db6ca670576f8d0b79633651c08c302b270f0f4712fa7c42888fd"),
        ),
        (
            Download(
                "https://raw.githubusercontent.com/PrincetonML/SIF/master/data/sentiment-train",
                3_806_066,
                "10a92a297ec38e262386e5a2713b4bc70e5d18ced88b7f54bd171a26e5b34ab5",
                REPOSITORY,
            ),
            Download(
                "https://raw.githubusercontent.com/PrincetonML/SIF/master/data/sentiment-dev",
                94_916,
                "9a6c7403b71a9b762158387afe4431253ae10cdfb2319b5275289f3766f48291",
                REPOSITORY,
            ),
            Download(
                "https://raw.githubusercontent.com/PrincetonML/SIF/master/data/sentiment-test",
                194_788,
                "4fefd1cd67526cf87ebc7fafc3afc21cc7cfa6ae53b45e74f77f9456e3c62752",
                REPOSITORY,
            ),
        ),
        layout="sst2",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "sst5",
        "classification",
        "Stanford Sentiment Treebank: sentences in five classes, 0 to 4",
        "not stated",
        (
            DataFile("train.tsv", 8_544, "02d21047b855924700a5609744646ec114ea292352b0b910996378711377d39f"),
            DataFile("dev.tsv", 1_101, "55da3320f8a8721deef364f069b9599d527dc7c87fabe1b438068f7c4891509d"),
            DataFile("test.tsv", 2_210, "d666ac89a761594d27a78254f15c8d2b866456b61883f583889fdc36125deeac"),
        ),
        (
            Download(
                "https://raw.githubusercontent.com/AcademiaSinicaNLPLab/sentiment_dataset/master/data/stsa.fine.train",
                902_818,
                "9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee",
                REPOSITORY,
            ),
            Download(
                "https://raw.githubusercontent.com/AcademiaSinicaNLPLab/sentiment_dataset/master/data/stsa.fine.dev",
                117_239,
                "b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3",
                REPOSITORY,
            ),
            Download(
                "https://raw.githubusercontent.com/AcademiaSinicaNLPLab/sentiment_dataset/master/data/stsa.fine.test",
                233_634,
                "0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73",
                REPOSITORY,
            ),
        ),
        layout="sst5",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "trec",
        "classification",
        "Types of questions: 6 classes, 50 finer ones; without quotes as in SentEval",
        "not stated",
        (
            DataFile("train.tsv", 5_452, "6da5b5920fbfe2239f5ac11e38d07c1e594aaf2e1470a80731ed12988894133d"),
            DataFile("test.tsv", 500, "0b3ac5acc47b427b8301d6c6a33ad7812e470eb13d9a233d5307700568fb1f04"),
        ),
        (
            Download(
                "https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label",
                335_858,
                "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
                HUB,
            ),
            Download(
                "https://cogcomp.seas.upenn.edu/Data/QA/QC/TREC_10.label",
                23_354,
                "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
                HUB,
            ),
        ),
        layout="trec",
        page="https://cogcomp.seas.upenn.edu/Data/QA/QC",
    ),
    DataSet(
        "mrpc",
        "paraphrase",
        "Microsoft Research paraphrases: pairs of news sentences; fetched, they are tokenised",
        "Microsoft Research licence",
        (
            DataFile(
                "train.tsv",
                4_076,
                "3d9a8c0c7fe69fdae424957e9289090eee96a8da663f7c337f5c512e860ed664",
                (("af5d376896210c2adbe8e9bfa39e32b3fbaa056ba022f61561adf373011e726c", TOKENISED),),
            ),
            DataFile(
                "test.tsv",
                1_725,
                "f8d80ef7bc2762d0c3522e76ff06235dd5da9ab7b79d0e6da95a7d466c3c7c9c",
                (("ca0b02d52bb75c590e171cced73709179033e47b4c23d9b138c0423b073f3760", TOKENISED),),
            ),
        ),
        (
            Download(
                "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_train.txt",
                1_047_044,
                "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
                TFDS,
            ),
            Download(
                "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_test.txt",
                441_275,
                "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
                TFDS,
            ),
        ),
        layout="mrpc",
        page="https://github.com/facebookresearch/SentEval",
    ),
    DataSet(
        "banking77",
        "classification",
        "Questions to a bank: 77 intents",
        "CC BY 4.0",
        (
            DataFile("train.tsv", 10_003, "5d7b75a3efaf76c2107a80fd32881b13cfcde931a7d9ae03ef708bdc2fe332db"),
            DataFile("test.tsv", 3_080, "2c04f8e4e18f762ca1335832a65aa5d83c0878b5cb970e11000e53e18dfd248a"),
        ),
        (
            Download(
                "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/train.csv",
                839_073,
                "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
                HUB,
            ),
            Download(
                "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/test.csv",
                239_961,
                "d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
                HUB,
            ),
        ),
        layout="banking77",
        page="https://github.com/PolyAI-LDN/task-specific-datasets",
    ),
    DataSet(
        "ag_news",
        "classification",
        "News: title, description, 4 topics",
        "non-commercial research",
        (
            DataFile("train.tsv.gz", 120_000),
            DataFile("test.tsv", 7_600, "523126e78bdbec588d8b4c27521d5a3c66aa016b38a46975cc9d54eb0077f64c"),
        ),
        (
            Download(
                "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/train.csv",
                29_470_338,
                "76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
                HUB,
            ),
            Download(
                "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/test.csv",
                1_857_427,
                "521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
                HUB,
            ),
        ),
        layout="ag_news",
        page="https://github.com/mhjabreel/CharCnn_Keras",
    ),
    DataSet(
        "search_snippets",
        "clustering",
        "Snippets of web search results: 8 topics",
        "not stated",
        (DataFile("all.tsv", 12_340, "328da25499c4a8b125aca21f360febe9cd0179b607787082762ed2facc381c95"),),
        obstacle="its official place could not be established",
    ),
)
