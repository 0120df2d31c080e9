"""The order of examples: every one once an epoch, the same in every run, classes together where they must."""

from __future__ import annotations

import numpy as np
import pytest
from training_process import examples_of

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.train import MixedExamples, MixedObjective
from gemel.train.batches import EpochBatches, order_in_groups
from gemel.train.mixing import MixedBatches, plan_batches
from gemel.train.objectives import BatchHardTriplet, CosineRegression, InBatchContrastive, Softmax


def test_every_example_comes_once_an_epoch_in_an_order_of_the_seed_alone() -> None:
    batches, again = (EpochBatches(examples_of("triplets", 10), InBatchContrastive(), 4, 7) for _ in range(2))
    assert batches.n_batches == 3
    epochs = [np.concatenate([batches.rows(3 * epoch + place) for place in range(3)]) for epoch in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(10))] * 2
    assert epochs[0].tolist() != epochs[1].tolist()
    # asked from the middle, as a resumed run does
    assert again.rows(4).tolist() == batches.rows(4).tolist() == epochs[1][4:8].tolist()


def test_examples_of_a_class_stand_together_and_none_is_lost() -> None:
    classes = np.array([0] * 9 + [1] * 5 + [2] * 1 + [3] * 2)
    order = order_in_groups(classes, 4, np.random.default_rng(0))
    assert sorted(order) == list(range(17))
    ordered = classes[order]
    edges = np.flatnonzero(np.diff(ordered)) + 1
    runs = [(int(run[0]), len(run)) for run in np.split(ordered, edges)]
    assert all(length >= 2 for number, length in runs if number != 2)
    assert sum(length for number, length in runs if number == 0) == 9


def test_batches_of_a_batch_hard_run_hold_several_of_a_class() -> None:
    labels = np.arange(240) % 60
    texts = Examples("classified texts", {"text": ["a"] * 240}, labels, tuple(map(str, range(60))))
    batches = EpochBatches(texts, BatchHardTriplet(), 16, 1)
    for number in range(30):
        drawn, counts = np.unique(labels[batches.rows(number)], return_counts=True)
        assert len(drawn) == 4
        assert set(counts) == {4}


def mix(mixing: str) -> tuple[MixedExamples, MixedObjective]:
    parts = {"nli": examples_of("classified pairs", 20), "sts": examples_of("scored pairs", 9)}
    return MixedExamples(parts, mixing), MixedObjective({"nli": Softmax(4, 3), "sts": CosineRegression()})


def test_proportional_mixing_gives_each_task_all_of_its_examples() -> None:
    examples, objective = mix("proportional")
    batches = MixedBatches(examples, objective, 4, 3)
    assert batches.n_batches == 5 + 3
    epochs = []
    for epoch in range(2):
        located = [examples.locate(batches.rows(8 * epoch + place)) for place in range(8)]
        for name, part in examples.parts.items():
            rows = np.concatenate([own for task, own in located if task == name])
            assert sorted(rows) == list(range(len(part)))
        epochs.append([task for task, _ in located])
    assert sorted(epochs[0]) == ["nli"] * 5 + ["sts"] * 3
    assert epochs[0] != epochs[1]


def test_round_robin_gives_turns_until_the_longest_has_ended() -> None:
    examples, objective = mix("round-robin")
    batches = plan_batches(examples, objective, 4, 3)
    assert batches.n_batches == 2 * 5
    located = [examples.locate(batches.rows(number)) for number in range(12)]
    assert [task for task, _ in located] == ["nli", "sts"] * 6
    seen = np.concatenate([own for task, own in located[:6] if task == "sts"])
    assert sorted(seen) == list(range(9))  # then it begins again, in a new order
    assert located[7][1].tolist() != located[1][1].tolist()


def test_tasks_that_do_not_fit_are_told() -> None:
    examples, _ = mix("proportional")
    with pytest.raises(InvalidInput, match="1 tasks were given to be mixed; expected 2 or more"):
        MixedExamples({"nli": examples.parts["nli"]})
    with pytest.raises(InvalidInput, match="mixing is 'shuffled'; expected proportional or round-robin"):
        MixedExamples(examples.parts, "shuffled")
    with pytest.raises(InvalidInput, match=r"a task is named 'a\.b'; expected letters"):
        MixedExamples({"a.b": examples.parts["nli"], "c": examples.parts["sts"]})
    with pytest.raises(InvalidInput, match=r"a task is named 'train'; .*no word of torch's"):
        MixedExamples({"train": examples.parts["nli"], "c": examples.parts["sts"]})
    with pytest.raises(InvalidInput, match="tasks nli, sts were given to the objective cosine"):
        plan_batches(examples, CosineRegression(), 4, 1)
    with pytest.raises(InvalidInput, match="the task 'sts' has the weight 0; expected more than 0"):
        MixedObjective({"sts": CosineRegression()}, {"sts": 0})
