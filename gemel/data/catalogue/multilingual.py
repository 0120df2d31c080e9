"""Sets in Korean and in many languages."""

from __future__ import annotations

from gemel.data.catalogue.entry import HUB, REPOSITORY, TFDS, DataFile, DataSet, Download

_KORNLU = "https://raw.githubusercontent.com/kakaobrain/KorNLUDatasets/master"
_KLUE = "https://raw.githubusercontent.com/KLUE-benchmark/KLUE/main/klue_benchmark"
_STSB = "https://raw.githubusercontent.com/PhilipMay/stsb-multi-mt/main/data"

# language and split, bytes, sha256
_STSB_FILES = (
    ("de-train", 847_845, "7a393283b1ec86d9919452bd793db2938831169b29f1584660c3d20e2ee2a53e"),
    ("de-dev", 242_726, "40ddf84ce3d2dfb957e11687edea30e5567c542219998f906ee552cfd3ef6769"),
    ("de-test", 188_602, "a92ce1015b201a342784ab7e34e024ceb0a0eeb479231fbadd05f756afb817fd"),
    ("en-train", 708_863, "e1e84fec60bbb598735552f54a35f4949904a484750fd2cb11e2720e49f63da6"),
    ("en-dev", 204_675, "d29586e96558c4eb52cf5ea5d14e9c24d3bf0e44f111b017caba43a5adc33226"),
    ("en-test", 158_891, "11523b625219e94e9ca05d2816b5f02cac1614c5894fe657376fa0806378d053"),
    ("es-train", 864_921, "c0b1e809c1d5e51f95e90753656a371a5c92fff9f459ba01be20ce23f3ecc8b4"),
    ("es-dev", 240_097, "7afece0711add2fb35bc65874bdf0fbbacbd5c784ebb3b926f4099f3989317d4"),
    ("es-test", 189_142, "2b6f60e63f19806436cdfd8fe314f91144f97e403d1d50f20ff9ffcb323d5b2f"),
    ("fr-train", 888_493, "29cece1d7e713cbc5c6940d4a0bbba7764da093e6d0b9da8fee26662b8af1d0a"),
    ("fr-dev", 249_002, "d9f0ed00811dc0d91663f195790bccc4627e0da3575e79e4e06ac777ec38039f"),
    ("fr-test", 195_020, "f7da31a1d88557344afcb26430dc1c6cb85e76b564333de1a29f8008205b39b2"),
    ("it-train", 849_516, "2e6563f62debb6c9a1233dc411424083b8694c8fe0a6d85723c8ce1ec8cfd894"),
    ("it-dev", 237_958, "ee64355376825a84ee6cc82b36d9f22b7f03a77d73ea97756cb7aaf85079552b"),
    ("it-test", 186_156, "e6f0be0552dd3c9e49ac794505086056b07f9cf2be68615e961107841a540248"),
    ("ja-train", 925_787, "5c25383359fcc2482414fd665f642aa4eaedc27ea1ab0a7e6c4075de8f61346f"),
    ("ja-dev", 266_161, "ae4a1da6a8df882ad1bf7a822456730188327c21e4ed0a3aec428e05cbaeb2f2"),
    ("ja-test", 210_014, "5ab39526aa6fb3c275f46310d807956dd5c0721fcd0a2687545287bba739b589"),
    ("nl-train", 810_934, "4d60f75ec8e7a51c79f2fd7207747cf567bb16812f12f798031b119a14018f7c"),
    ("nl-dev", 229_492, "d2b2a895824d6bd60a28dbf9c22248df6e65603a389c08943255b7c2c694f8f2"),
    ("nl-test", 177_327, "a0ee96b6ee9ed0181664e687f6b42f6273a87c885f34833a1e5a06368759cb35"),
    ("pl-train", 808_667, "87a9c4443badde50c56e5fe4e198ee6bfd35c01cc82c487a9a97921c2a2e8415"),
    ("pl-dev", 227_287, "0caa1ef060e886a41f6ae05bdead735089ed14e9715e63a47583ba2f13b4a17b"),
    ("pl-test", 176_382, "abea78b1b3c4a39017da96d5074f4d61c1b825590bfb65e50d64216a7c68de59"),
    ("pt-train", 832_314, "8d769a45cf9435b840b3567dc8e327bee437a6a496eec0a1840d97262e032f60"),
    ("pt-dev", 235_432, "8f063a119e9e4cd8eaa6de42ff125984867c54bfbacef14fce493783bbe6b113"),
    ("pt-test", 183_762, "9ba9018a1919efd24d243112ecbb3c448e2d361eebaa1c9aadf8988e3767e9be"),
    ("ru-train", 1_373_901, "9b2fa623b9a0fa827151a47f4713c5ebc56313c069ff47855e393d505951aa30"),
    ("ru-dev", 382_231, "8e4de0dcb2d87c1a2adc7bfdbe8ce4a7e0a1e10e3deba947e26069490ab66abd"),
    ("ru-test", 295_513, "87a92ee27b26e724c4e4923d744d8198f9eef49698be7b514734118a755c4fce"),
    ("zh-train", 669_068, "6d44b5faa6c88e76f0c5f39fcd5963622c121b1d106f139a33b5b1df24c20ce2"),
    ("zh-dev", 189_283, "f24a3580938f840d82ee3d520de3af2be355b389850f21d0cc5c228ba3f6cdc9"),
    ("zh-test", 148_541, "a583195cb30b9d99ae5fe1d03cd3e544c4c2a1c48d27713fb0686c7bae9fbb19"),
)
_TRANSLATIONS = tuple(
    Download(f"{_STSB}/stsb-{name}.csv", n_bytes, sha256, REPOSITORY) for name, n_bytes, sha256 in _STSB_FILES
)

MULTILINGUAL = (
    DataSet(
        "korsts",
        "sts",
        "STS benchmark in Korean; dev and test checked by people",
        "CC BY-SA 4.0",
        (
            DataFile("train.tsv", 5_749, "2ded6d0019c148ce92948a1ecb048b9817d2e4efe5058ce0876bac1666478adc"),
            DataFile("dev.tsv", 1_500, "26e3c938f008406cf46ba47fb40c8df8821d91ebabedafc482201329bc2eafbb"),
            DataFile("test.tsv", 1_379, "1318325c3aa2324f1e0f035586d6828c7b646033180f718b8ad26fe377da0a49"),
        ),
        (
            Download(
                f"{_KORNLU}/KorSTS/sts-train.tsv",
                1_046_952,
                "b5aaa7f957d6ff46f4b6834a8b0f024a9234a6eefe9289aed66746b4533da3b8",
                HUB,
            ),
            Download(
                f"{_KORNLU}/KorSTS/sts-dev.tsv",
                307_276,
                "d835b65b424401fbcce6be28a78159df8d61f5b19977ea7a0b83b8cb6105f393",
                HUB,
            ),
            Download(
                f"{_KORNLU}/KorSTS/sts-test.tsv",
                249_596,
                "13f83a3440d9db52d134eb40303ce021b03264aa338fbf2871c8786ce04d2105",
                HUB,
            ),
        ),
        layout="korsts",
        page="https://github.com/kakaobrain/KorNLUDatasets",
    ),
    DataSet(
        "kornli",
        "nli",
        "XNLI in Korean, translated by people: dev and test of KorNLI",
        "CC BY-SA 4.0",
        (
            DataFile(
                "dev_xnli_ko.tsv", 2_490, "8c9bb5e303c5b36aa17b4f294f6d26f140ea88a69b34b7a4892d6c85ab85342d"
            ),
            DataFile(
                "test_xnli_ko.tsv", 5_010, "7ce624ce83d60babec17bb267e9b0565ac30ddfc8e7e82254c390fd589482d6a"
            ),
        ),
        (
            Download(
                f"{_KORNLU}/KorNLI/xnli.dev.ko.tsv",
                511_383,
                "821fb1c1c2e538ac2724a6132da36ffa379eb9a542ceb89243b3cf711377382c",
                HUB,
            ),
            Download(
                f"{_KORNLU}/KorNLI/xnli.test.ko.tsv",
                1_032_430,
                "0db53cf8e182283a0d0404ec3fe1b15d1e29236d23d22082dc20d43067254b3e",
                HUB,
            ),
        ),
        layout="kornli",
        page="https://github.com/kakaobrain/KorNLUDatasets",
    ),
    DataSet(
        "kornli_train",
        "nli",
        "SNLI and MultiNLI in Korean, translated by machine: the training part of KorNLI",
        "CC BY-SA 4.0",
        (DataFile("train.tsv.gz", 942_854),),
        (
            Download(
                f"{_KORNLU}/KorNLI/snli_1.0_train.ko.tsv",
                78_486_224,
                "aaf12d8955fcda2b14319e5cabb9b31824c6f504aede460c975b518911f484c0",
                HUB,
            ),
            Download(f"{_KORNLU}/KorNLI/multinli.train.ko.tsv"),
        ),
        layout="kornli_train",
        page="https://github.com/kakaobrain/KorNLUDatasets",
    ),
    DataSet(
        "klue_sts",
        "sts",
        "KLUE: Korean pairs, scores 0 to 5 and similar or not",
        "CC BY-SA 4.0",
        (
            DataFile("train.tsv.gz", 11_668),
            DataFile("dev.tsv", 519, "d36ead59b6edf9631f9fe4da4193fa35e31ca9ae94885ddc2179c9ea92b9ea64"),
        ),
        (
            Download(f"{_KLUE}/klue-sts-v1.1/klue-sts-v1.1_train.json"),
            Download(
                f"{_KLUE}/klue-sts-v1.1/klue-sts-v1.1_dev.json",
                454_638,
                "b6a0ae0c370e21687f7eef0fdea872a328bb2ecbdb020c546cb870d28606bf80",
                REPOSITORY,
            ),
        ),
        layout="klue_sts",
        page="https://github.com/KLUE-benchmark/KLUE",
    ),
    DataSet(
        "klue_nli",
        "nli",
        "KLUE: Korean inference",
        "CC BY-SA 4.0",
        (
            DataFile("train.tsv.gz", 24_998),
            DataFile("dev.tsv", 3_000, "76756d6a914fbc244def0d9ade9c39789b262314cba593efbc8d6a78e2e29605"),
        ),
        (
            Download(f"{_KLUE}/klue-nli-v1.1/klue-nli-v1.1_train.json"),
            Download(
                f"{_KLUE}/klue-nli-v1.1/klue-nli-v1.1_dev.json",
                1_498_298,
                "0699db82be17766b26e199864e6260443e17ec6e91d1870e876419e388f245b1",
                REPOSITORY,
            ),
        ),
        layout="klue_nli",
        page="https://github.com/KLUE-benchmark/KLUE",
    ),
    DataSet(
        "stsb_multi_mt",
        "sts",
        "STS benchmark, translated by machine into ten languages, and in English",
        "as the STS benchmark",
        (
            DataFile(
                "train.tsv.gz", 63_239, "16ca99bd29a1855b60b06bc09a3fd070da7cb3073c50579aa491fd138d6b1e51"
            ),
            DataFile(
                "dev.tsv.gz", 16_500, "287e06ca83be7f8688503f736932326ed7c62d7c91d0d0d2218d7ac22e9b5a98"
            ),
            DataFile(
                "test.tsv.gz", 15_169, "0bd614ec57388f05aeb7d34e734e88dc5d028424e4e33a2230115445998d8a9a"
            ),
        ),
        _TRANSLATIONS,
        layout="stsb_multi_mt",
        page="https://github.com/PhilipMay/stsb-multi-mt",
    ),
    DataSet(
        "xnli",
        "nli",
        "XNLI: dev and test of MultiNLI's kind in 15 languages",
        "CC BY-NC 4.0",
        (
            DataFile(
                "dev.tsv.gz", 37_350, "eec24e790e72b9fcc2700667f792bbc8f911c085a031bd134580d2033bb24a8b"
            ),
            DataFile(
                "test.tsv.gz", 75_150, "ea4d76ca64f428e2e5be47b5c30909c3338661e8c5f236a047a5ecc7f06246ef"
            ),
        ),
        (
            Download(
                "https://dl.fbaipublicfiles.com/XNLI/XNLI-1.0.zip",
                17_865_352,
                "4ba1d5e1afdb7161f0f23c66dc787802ccfa8a25a3ddd3b165a35e50df346ab1",
                HUB,
            ),
        ),
        layout="xnli",
        page="https://github.com/facebookresearch/XNLI",
    ),
    DataSet(
        "pawsx",
        "paraphrase",
        "PAWS-X: dev and test of PAWS in seven languages",
        "any use, with acknowledgement of Google",
        (
            DataFile(
                "dev.tsv.gz", 14_000, "3399cb56982fbb393d0083ebbf9ee11870e163484d0941a555ae6a6a437a7469"
            ),
            DataFile("test.tsv.gz", 14_000),
        ),
        (
            Download(
                "https://storage.googleapis.com/paws/pawsx/x-final.tar.gz",
                30_282_057,
                "4146db499101d66e68ae4c8ed3cf9dadecd625f44b7d8cf3d4a0fe93afc4fd9f",
                TFDS,
            ),
        ),
        layout="pawsx",
        page="https://github.com/google-research-datasets/paws/tree/master/pawsx",
    ),
)
