"""Which labels of pairs are classes: -1 may say that there is none, and NLI's three stand alone."""

from __future__ import annotations

from collections import Counter

from gemel.data.class_names import (
    HUB_NLI_LABELS,
    HUB_NO_GOLD_LABEL,
    NLI_LABELS,
    NO_GOLD_LABEL,
    class_name,
)

ROWS_OF_DOUBT = 1_000  # to look at for a decision: in NLI a third of them would be 2


class GoldLabels:
    """The labels that were seen, and what they say of each other."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._taken: Counter[str] = Counter()

    @property
    def lack(self) -> bool:
        """-1 stands beside 0, 1 and 2, and is no class."""
        return self._seen == HUB_NLI_LABELS

    @property
    def may_lack(self) -> bool:
        """There is a -1, and nothing has decided yet."""
        return self._taken[HUB_NO_GOLD_LABEL] > 0 and self._seen < HUB_NLI_LABELS

    @property
    def are_of_nli(self) -> bool:
        """All three of NLI's are there by their names, and so whatever else there is is no class."""
        return self._seen.issuperset(NLI_LABELS)

    @property
    def n_without(self) -> int:
        """How many of the rows that were taken have no class."""
        if self.are_of_nli:
            return self._taken.total() - sum(self._taken[name] for name in NLI_LABELS)
        return self._taken[HUB_NO_GOLD_LABEL] if self.lack else 0

    def take(self, label: str) -> None:
        """Note the label of a row that was taken."""
        self._seen.add(label)
        self._taken[label] += 1

    def look_at(self, cell: object) -> None:
        """Note the label of a row that was not taken, whatever else is in it."""
        label = class_name(cell)
        if label not in (None, NO_GOLD_LABEL):
            self._seen.add(str(label))
