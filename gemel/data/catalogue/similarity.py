"""Pairs with scores that people gave."""

from __future__ import annotations

from gemel.data.catalogue.entry import HUB, TOKENISED, DataFile, DataSet, Download

SIMILARITY = (
    DataSet(
        "sts12",
        "sts",
        "SemEval 2012 task 6, test: news, video descriptions, translations",
        "Microsoft Research licence for MSRpar and MSRvid",
        (
            DataFile(
                "test.tsv",
                3_108,
                "f7f8f6fa74a47e951f26c3bb695efda6f054f2d38b9cd8804bfbe9a311481a7a",
                (("4c6977d7bbf89cf8a0cd5706039a466f0dc8d77f315652726aeb2139cc4d738c", TOKENISED),),
            ),
        ),
        (Download("http://ixa2.si.ehu.es/stswiki/images/4/40/STS2012-en-test.zip"),),
        layout="sts12",
        page="http://ixa2.si.ehu.es/stswiki",
    ),
    DataSet(
        "sts13",
        "sts",
        "*SEM 2013, test without SMT as in SentEval: headlines, glosses",
        "not stated",
        (
            DataFile(
                "test.tsv",
                1_500,
                "b56372a529746895dde182845c5e80b72fa5aca764f4198d33450c34c8b1fe29",
                (("9a7e71cd1fbd4b3a1c8dad95bf33eff5a886d89d4766d41718e505ecff35b2d6", TOKENISED),),
            ),
        ),
        (Download("http://ixa2.si.ehu.es/stswiki/images/2/2f/STS2013-en-test.zip"),),
        layout="sts13",
        page="http://ixa2.si.ehu.es/stswiki",
    ),
    DataSet(
        "sts14",
        "sts",
        "SemEval 2014 task 10, test: forums, news, headlines, images, glosses, tweets",
        "not stated",
        (
            DataFile(
                "test.tsv",
                3_750,
                "1027fba53f6dea031a09a02bd451d36895b7ca81ab64f202532b06b7235b042b",
                (("b95688a5c5598dab769ae73fe89f72884e289648607a259ca981810a2f725698", TOKENISED),),
            ),
        ),
        (Download("http://ixa2.si.ehu.es/stswiki/images/8/8c/STS2014-en-test.zip"),),
        layout="sts14",
        page="http://ixa2.si.ehu.es/stswiki",
    ),
    DataSet(
        "sts15",
        "sts",
        "SemEval 2015 task 2, judged pairs of the test: forums, students, beliefs, headlines, images",
        "CC BY-SA for answers-forums, else not stated",
        (
            DataFile(
                "test.tsv",
                3_000,
                "eada94e0d534946c7a1c2d718e8229bf50a2d31a53b4444e914f398185c5f92c",
                (("e91e39ec08855c493cb4e2075a7fe529dbc79e03111872b96df94c6f94c007a0", TOKENISED),),
            ),
        ),
        (Download("http://ixa2.si.ehu.es/stswiki/images/d/da/STS2015-en-test.zip"),),
        layout="sts15",
        page="http://ixa2.si.ehu.es/stswiki",
    ),
    DataSet(
        "sts16",
        "sts",
        "SemEval 2016 task 1, judged pairs of the test: answers, headlines, plagiarism, questions",
        "CC BY-SA 3.0 for the StackExchange parts, else as in its LICENSE.txt",
        (
            DataFile(
                "test.tsv",
                1_186,
                "d90bdf208eff37eb60f7f252ab46de795d478303a3ecdbb2bc8bf4bcfb0e69e0",
                (("d1124f5d7997a315044c772746d410442c44e3fea201f8190eaa5c43b996ad73", TOKENISED),),
            ),
        ),
        (Download("http://ixa2.si.ehu.es/stswiki/images/9/98/STS2016-en-test.zip"),),
        layout="sts16",
        page="http://ixa2.si.ehu.es/stswiki",
    ),
    DataSet(
        "stsb",
        "sts",
        "STS benchmark: selected pairs of SemEval 2012 to 2017",
        "CC BY-SA 4.0 for the scores; texts as in its LICENSE.txt",
        (
            DataFile("train.tsv", 5_749, "af0b72098026d4d5a295dd6a9f9cd6f6475ce8cb556a02abd9a088fd91b283b7"),
            DataFile("dev.tsv", 1_500, "13a5c57bb4afe1ffcaa219cf059da7fe256daa3832d37f8cf59768d3b790df66"),
            DataFile("test.tsv", 1_379, "ce4fc822b65d966d65a0d01d1a587134ec6549273f9c2e252e59168efee48c7d"),
        ),
        (
            Download(
                "http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz",
                409_630,
                "557a86abbd2b76ee6768d8b5103b659601a9d26b797898c7467812f303b21280",
                "a copy in eduardofv/sts_eval, data/sources",
            ),
        ),
        layout="stsb",
        page="http://ixa2.si.ehu.es/stswiki/index.php/STSbenchmark",
    ),
    DataSet(
        "sick",
        "sts",
        "SICK as in SemEval 2014 task 1: relatedness 1 to 5, entailment",
        "CC BY-NC-SA 3.0",
        (
            DataFile("train.tsv", 4_500, "a956ab45a56c962a0e95107f91bbfd315c91a9b9551321754006896ff2bb96e3"),
            DataFile("dev.tsv", 500, "7a5159982debfb3c4002ec6eda052c1a52e14df8b58046b50e5df2005d89afd1"),
            DataFile("test.tsv", 4_927, "d83c95248ae6ff8ff2217392d494df57065bff0ef2225f2099a1ea7f20a93838"),
        ),
        (
            Download("http://alt.qcri.org/semeval2014/task1/data/uploads/sick_train.zip"),
            Download("http://alt.qcri.org/semeval2014/task1/data/uploads/sick_trial.zip"),
            Download("http://alt.qcri.org/semeval2014/task1/data/uploads/sick_test_annotated.zip"),
        ),
        layout="sick",
        page="http://alt.qcri.org/semeval2014/task1",
    ),
    DataSet(
        "sick_zenodo",
        "sts",
        "SICK as later curated: 9,840 of its pairs, other splits than the published figures have",
        "CC BY-NC-SA 3.0",
        (DataFile("train.tsv", 4_439), DataFile("dev.tsv", 495), DataFile("test.tsv", 4_906)),
        (
            Download(
                "https://zenodo.org/record/2787612/files/SICK.zip?download=1",
                217_584,
                "da272af924399fc2de4889ed55383e38822c10d16c4a949a89d597d09a0b7912",
                HUB,
            ),
        ),
        layout="sick",
        page="https://zenodo.org/record/2787612",
    ),
    DataSet(
        "afs",
        "sts",
        "Argument Facet Similarity: arguments on three topics, scores 0 to 5",
        "not stated",
        (DataFile("all.tsv"),),
        layout="afs",
        page="https://nlds.soe.ucsc.edu/node/44",
        obstacle="its page hands it out to people, not to programs",
    ),
    DataSet(
        "afs_binary",
        "sts",
        "Argument Facet Similarity, only similar or not",
        "not stated",
        (DataFile("all.tsv", 6_002, "615acb8b0a33eafda5470a0d6a38b1db959fad1e794134e85252efa95ea67348"),),
        page="https://nlds.soe.ucsc.edu/node/44",
        obstacle="it was gathered from task files that nobody publishes as one set",
    ),
)
