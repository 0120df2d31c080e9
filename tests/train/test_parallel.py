"""Several processes make the run that one makes: real ones, started as torchrun starts them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from parallel_process import GRADIENTS, RUNS, gradients, run
from safetensors.numpy import load_file

from gemel.errors import InvalidInput
from gemel.train.metrics import MetricsFile
from gemel.train.parallel import Team, WholeBatch, join_team, refuse_team

TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def launch(n_processes: int, *command: object) -> subprocess.Popen[str]:
    """`torchrun --standalone`, on whatever port is free."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    return subprocess.Popen(
        [*launcher, str(n_processes), *map(str, command)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launched(n_processes: int, *command: object) -> subprocess.CompletedProcess[str]:
    process = launch(n_processes, *command)
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def parallel_run(n_processes: int, *command: object) -> None:
    done = launched(n_processes, TESTS / "parallel_process.py", *command)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def three_processes(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What three processes came to, all in one start, because a start takes seconds."""
    output = tmp_path_factory.mktemp("three")
    parallel_run(3, "many", tiny_bert, output)
    return output


@pytest.mark.parametrize(("name", "n_rows"), GRADIENTS)
def test_three_processes_have_the_loss_and_gradients_of_one_with_all_rows(
    tiny_bert: Path, three_processes: Path, name: str, n_rows: int
) -> None:
    expected = gradients(tiny_bert, name, n_rows)
    for rank in range(3):
        found = load_file(three_processes / f"{name}-{n_rows}-{rank}.safetensors")
        assert found.keys() == expected.keys()
        for parameter, value in expected.items():
            np.testing.assert_allclose(found[parameter], value, rtol=1e-9, atol=1e-11, err_msg=parameter)


@pytest.mark.parametrize("name", RUNS)
def test_three_processes_train_the_model_that_one_trains(
    tiny_bert: Path, three_processes: Path, tmp_path: Path, name: str
) -> None:
    expected = run(tiny_bert, tmp_path / "one", name)
    for rank in range(3):
        steps, best_step = json.loads((three_processes / f"{name}-{rank}.json").read_text())
        assert (steps, best_step) == (expected.steps, expected.best_step)
    for file in ("weights.safetensors", "mean.safetensors"):
        one, three = (
            load_file(folder / "last" / file) for folder in (tmp_path / "one", three_processes / name)
        )
        for parameter, value in one.items():
            # The bias of the keys cancels in the softmax: its gradient is noise, which Adam scales up.
            if not parameter.endswith("key.bias"):
                np.testing.assert_allclose(three[parameter], value, atol=2e-4, err_msg=parameter)
    lines = [
        MetricsFile(folder / "metrics.jsonl").read() for folder in (tmp_path / "one", three_processes / name)
    ]
    assert [line["step"] for line in lines[0]] == [line["step"] for line in lines[1]]
    losses = [[line["loss"] for line in own if "loss" in line] for own in lines]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)


def test_shares_are_in_order_and_as_equal_as_can_be() -> None:
    rows = np.arange(8)[::-1].copy()
    assert [Team(rank, 3).share(rows).tolist() for rank in range(3)] == [[7, 6, 5], [4, 3, 2], [1, 0]]
    assert [len(Team(rank, 3).share(rows[:1])) for rank in range(3)] == [1, 0, 0]
    assert len({Team(rank, 8).seed(42 * 1_000_003 + 10**9) for rank in range(8)}) == 8


def test_a_process_alone_is_a_team_of_one() -> None:
    assert join_team() == Team(0, 1)
    assert Team().average([], [3.5]) == [3.5]
    assert Team().from_leader(lambda: "done") == "done"


def test_a_batch_that_has_no_row_for_every_process_is_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_size is 2 and there are 3 processes"):
        WholeBatch(Team(0, 3), torch.nn.Identity(), batch_size=2)


@pytest.mark.extras
def test_a_killed_run_of_two_processes_goes_on_to_the_same_bits(tiny_bert: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    parallel_run(2, "contrastive", tiny_bert, whole, "dropout")
    process = launch(2, TESTS / "parallel_process.py", "contrastive", tiny_bert, broken, "dropout", "0-dies")
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert json.loads((broken / "last" / "state.json").read_text())["state"]["step"] == 4
    parallel_run(2, "contrastive", tiny_bert, broken, "dropout", "resume")
    files = ("weights", "optimiser", "mean")
    for file in ("model/model.safetensors", *(f"last/{name}.safetensors" for name in files)):
        assert (whole / file).read_bytes() == (broken / file).read_bytes()


def start_by_hand(rank: int, port: int, *command: object) -> subprocess.Popen[str]:
    """One of two processes without torchrun, which would end the other as well."""
    told = {
        "RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": 1,
    }
    return subprocess.Popen(
        [sys.executable, TESTS / "parallel_process.py", *map(str, command)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
        | {name: str(value) for name, value in told.items()},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.extras
def test_losing_a_process_leaves_a_checkpoint_and_a_clear_error(tiny_bert: Path, tmp_path: Path) -> None:
    port = free_port()
    command = ("softmax", tiny_bert, tmp_path / "run", "1-dies")
    with start_by_hand(0, port, *command) as leader, start_by_hand(1, port, *command) as other:
        _, errors = leader.communicate(timeout=300)
        other.communicate(timeout=60)
    assert leader.returncode != 0
    assert "ProcessLost: another process of the run has ended or cannot be reached" in errors
    state = json.loads((tmp_path / "run" / "last" / "state.json").read_text())["state"]
    assert 2 <= state["step"] < 12
    assert run(tiny_bert, tmp_path / "run", "softmax", "resume").steps == 12  # by one process, if need be


@pytest.mark.extras
def test_the_command_trains_in_two_processes_and_only_one_speaks(tiny_bert: Path, tmp_path: Path) -> None:
    lines = ["sentence1\tsentence2\tscore", *(f"the man {n}\ta woman {n}\t{n / 40}" for n in range(40))]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["-m", "gemel", "train", "-m", tiny_bert, "--examples", tmp_path / "pairs.tsv"]
    done = launched(2, *arguments, "-o", tmp_path / "out", "--max-steps", 2)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["steps"] == 2
    assert (tmp_path / "out" / "result.json").is_file()
    again = launched(2, *arguments, "-o", tmp_path / "out")
    assert again.returncode != 0
    assert again.stderr.count("gemel: " + str(tmp_path / "out") + " holds a run already") == 1
    assert "process 0 of the run has failed" in again.stderr


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def on_two_machines(places: list[Path], command: list[object]) -> list[subprocess.CompletedProcess[str]]:
    """`torchrun` once on each, as docs/scale.md has it; they share no folder but the one of the model."""
    port = free_port()
    agents = []
    for rank, place in enumerate(places):
        launcher = ["-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 1, "--node-rank", rank]
        launcher += ["--master-addr", "127.0.0.1", "--master-port", port]
        agents.append(
            subprocess.Popen(
                [sys.executable, *map(str, [*launcher, *command])],
                env={**os.environ, "PYTHONPATH": str(TESTS.parent), "OMP_NUM_THREADS": "1"},
                cwd=place,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    done = []
    for agent in agents:
        output, errors = agent.communicate(timeout=300)
        done.append(subprocess.CompletedProcess(agent.args, agent.returncode, output, errors))
    return done


RECIPE = """
model = "{model}"
[[stage]]
data = {{ path = "pairs.tsv" }}
train = {{ max_steps = 2 }}
[[stage]]
data = {{ path = "pairs.tsv" }}
train = {{ max_steps = 3 }}
"""


@pytest.mark.extras
def test_two_machines_train_without_a_common_folder(tiny_bert: Path, tmp_path: Path) -> None:
    lines = ["sentence1\tsentence2\tscore", *(f"the man {n}\ta woman {n}\t{n / 40}" for n in range(40))]
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
        (place / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (place / "two.toml").write_text(RECIPE.format(model=tiny_bert), encoding="utf-8")
    command: list[object] = ["-m", "gemel", "train", "two.toml", "-o", "out"]
    first, second = on_two_machines(places, command)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert [json.loads(line)["steps"] for line in first.stdout.splitlines()] == [2, 3]
    assert second.stdout == ""
    assert (places[0] / "out" / "stage-2" / "model").is_dir()
    assert not (places[1] / "out").exists()
    again, _ = on_two_machines(places, [*command, "--resume"])
    assert again.returncode == 0, again.stderr
    lines[7] = "another\tsentence\t0.5"
    (places[1] / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, refused = on_two_machines(places, [*command[:-1], "other"])
    assert "process 1 of the run has another examples than process 0" in refused.stderr


def test_what_one_process_does_is_refused_to_several(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_team("table 6")
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        InvalidInput, match="torchrun has started 2 processes, and table 6 is the work of one"
    ):
        refuse_team("table 6")
