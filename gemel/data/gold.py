"""Whether -1 is a class of pairs, or says that there is none, as NLI on the hub has it."""

from __future__ import annotations

from gemel.data.class_names import HUB_NLI_LABELS, HUB_NO_GOLD_LABEL, NO_GOLD_LABEL, class_name

ROWS_OF_DOUBT = 1_000  # to look at for a decision: in NLI a third of them would be 2


class GoldLabels:
    """The labels that were seen, and what they say of -1."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._n_doubtful = 0

    @property
    def lack(self) -> bool:
        """-1 stands beside 0, 1 and 2, and is no class."""
        return self._seen == HUB_NLI_LABELS

    @property
    def may_lack(self) -> bool:
        """There is a -1, and nothing has decided yet."""
        return self._n_doubtful > 0 and self._seen < HUB_NLI_LABELS

    @property
    def n_without(self) -> int:
        """How many of the rows that were taken have no class."""
        return self._n_doubtful if self.lack else 0

    def take(self, label: str) -> None:
        """Note the label of a row that was taken."""
        self._seen.add(label)
        self._n_doubtful += label == HUB_NO_GOLD_LABEL

    def look_at(self, cell: object) -> None:
        """Note the label of a row that was not taken, whatever else is in it."""
        label = class_name(cell)
        if label not in (None, NO_GOLD_LABEL):
            self._seen.add(str(label))
