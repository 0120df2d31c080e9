"""Which repository on the hub a name without an organisation means."""

from __future__ import annotations

DEFAULT_ORGANISATION = "sentence-transformers"
# Raw transformers are older than the hub's organisations: papers and programs still call them by these names.
_RAW = {
    "albert": """albert-base-v1 albert-base-v2 albert-large-v1 albert-large-v2 albert-xlarge-v1
        albert-xlarge-v2 albert-xxlarge-v1 albert-xxlarge-v2""",
    "almanach": "camembert-base",
    "distilbert": """distilbert-base-cased distilbert-base-german-cased distilbert-base-multilingual-cased
        distilbert-base-uncased distilroberta-base""",
    "FacebookAI": "roberta-base roberta-large xlm-roberta-base xlm-roberta-large",
    "google-bert": """bert-base-cased bert-base-chinese bert-base-german-cased bert-base-multilingual-cased
        bert-base-multilingual-uncased bert-base-uncased bert-large-cased bert-large-cased-whole-word-masking
        bert-large-uncased bert-large-uncased-whole-word-masking""",
}
RAW_TRANSFORMERS = {name: f"{owner}/{name}" for owner, names in _RAW.items() for name in names.split()}


def full_name(name: str, organisation: str = DEFAULT_ORGANISATION) -> str:
    """The name with its organisation."""
    return name if "/" in name else RAW_TRANSFORMERS.get(name, f"{organisation}/{name}")


def names_in_cache(full: str) -> list[str]:
    """What a cache may call it: other programs keep a raw transformer by its bare name."""
    bare = full.rpartition("/")[2]
    return [full, bare] if RAW_TRANSFORMERS.get(bare) == full else [full]
