"""An adapter without its framework says what to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from gemel.errors import MissingExtra

# adapter -> the package that it cannot do without, and the extra that brings it
NEEDS = {
    "bertopic": ("bertopic", "bertopic"),
    "frames": ("pyarrow", "parquet"),
    "haystack": ("haystack", "haystack"),
    "keybert": ("keybert", "keybert"),
    "langchain": ("langchain_core", "langchain"),
    "llama_index": ("llama_index.core.base.embeddings.base", "llama-index"),
    "mteb": ("mteb.models.abs_encoder", "mteb"),
    "sklearn": ("sklearn.base", "evaluate"),
    "spacy": ("spacy.language", "spacy"),
}


@pytest.mark.parametrize("adapter", NEEDS)
def test_an_adapter_without_its_framework_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, adapter: str
) -> None:
    package, extra = NEEDS[adapter]
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for module in [name for name in sys.modules if f"{name}.".startswith(f"gemel.adapters.{adapter}.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtra, match=rf"pip install 'gemel\[{extra}\]'"):
        import_module(f"gemel.adapters.{adapter}")
