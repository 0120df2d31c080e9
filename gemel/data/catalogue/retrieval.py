"""Questions and documents: Cranfield, and BEIR's sets in their test split."""

from __future__ import annotations

from gemel.data.catalogue.entry import TFDS, DataFile, DataSet, Download

_BEIR_PLACE = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
# folder in BEIR, bytes and sha256 of its archive, what is searched for
_BEIR = (
    (
        "arguana",
        3_773_617,
        "cfdf79adce27a401b3cd3ea267903134dbfab2c6afeb95d7fe5724a00bf7557b",
        "counter-arguments to arguments",
    ),
    (
        "climate-fever",
        1_228_666_652,
        "9d6cf03121238bba187f9d4b5bdfdc42b2b171f19b6d86a557f95c51687691f3",
        "evidence for claims on climate",
    ),
    (
        "dbpedia-entity",
        639_285_131,
        "e4c13080b5399a19e02b04c908c485f8997ac9e265a06ef5f9f28c3f1134c472",
        "entities of DBpedia",
    ),
    (
        "fever",
        1_236_988_269,
        "58b3faee0c152158b27970380f778ea56e4e34482034404226c10e11eadc7b72",
        "evidence for claims",
    ),
    (
        "fiqa",
        17_948_027,
        "32c7df99ed21252fdfb2cf3f5673502a8d245ee0c44c4a133570d92ce2b3ad02",
        "answers to financial questions",
    ),
    (
        "hotpotqa",
        654_025_350,
        "c62459dbc91d31329584507b1fa564b3b1abcee58800967113054ee0f5a15c62",
        "passages that answer in two steps",
    ),
    (
        "msmarco",
        1_082_258_632,
        "f46aed8343564261c27228b7cf22dde5c9a70143fe34dc3c589bd5322308712a",
        "passages for web questions",
    ),
    (
        "nfcorpus",
        2_448_432,
        "efe5be03f8c5b86a5870102d0599d227c8c6e2484328e68c6522560385671b0b",
        "medical abstracts for plain questions",
    ),
    (
        "nq",
        498_307_926,
        "2553bf7bfbab47b1436ca00a34bce57320e18e611fd00999a2a3a1b4714be752",
        "passages of Wikipedia for questions",
    ),
    (
        "quora",
        15_853_968,
        "56aacd9dcc4d9c093b63f175afdda0e21cbc8442ecf6c717d09de7b358d77531",
        "duplicate questions",
    ),
    (
        "scidocs",
        142_471_588,
        "96640201687767c9b1fcc5af7a80b90fb325b37fa25329c2586c25edcfa17ef1",
        "papers that are cited",
    ),
    (
        "scifact",
        2_816_079,
        "536e14446a0ba56ed1398ab1055f39fe852686ecad24a6306c80c490fa8e0165",
        "abstracts for scientific claims",
    ),
    (
        "trec-covid",
        73_876_720,
        "120f42a7864d2214234537733c0d2c6684e42fdfafff2c5eacf98afca6656aa0",
        "papers on COVID-19",
    ),
    (
        "webis-touche2020",
        227_132_363,
        "1a706ed9c03ecc75cf012495bd8e37b761f7b0350a939910d0f54862e26fc601",
        "arguments on controversial topics",
    ),
)


def _beir(folder: str, n_bytes: int, sha256: str, what: str) -> DataSet:
    name = folder.replace("-", "_")
    return DataSet(
        "beir_quora" if name == "quora" else name,
        "retrieval",
        f"BEIR: {what}",
        "as its authors have it; see the page of BEIR",
        (DataFile("corpus.tsv.gz"), DataFile("queries.tsv.gz"), DataFile("qrels.tsv")),
        (Download(f"{_BEIR_PLACE}/{folder}.zip", n_bytes, sha256, TFDS),),
        layout=f"beir/{folder}",
        page="https://github.com/beir-cellar/beir",
    )


RETRIEVAL = (
    DataSet(
        "cranfield",
        "retrieval",
        "Cranfield: abstracts on aerodynamics, 225 questions, all judged",
        "not stated",
        (
            DataFile("corpus.tsv", 1_400, "c8ef827b361c593d9d469bc662fab5ce10f9a2a15564c432dda079662a67c334"),
            DataFile("queries.tsv", 225, "d8c1610acc4943d4c36e161dcbd0a10f1c9232cdf16b5efd91978e2f917094ba"),
            DataFile("qrels.tsv", 1_837, "7de1628b9a01dbf341c4af498f0cf5d3b923a7ded29bf843c7735efa4950e283"),
        ),
        page="http://ir.dcs.gla.ac.uk/resources/test_collections/cran",
        obstacle="its page has it in a layout that is not read here",
    ),
    *(_beir(*row) for row in _BEIR),
)
