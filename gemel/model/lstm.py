"""The maximum over an LSTM's states, with a backward pass that is quick on a processor.

torch accumulates the gradient of the recurrent weights step by step, which takes five to eight times as long
as the forward pass. Here the steps only gather the gradients of the gates, and one matrix product at the end
makes those of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class MaxOverStates(torch.autograd.Function):
    """Texts as packed steps into the maximum of each state over the words (texts, hidden)."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, sizes: list[int], into: Tensor, recurrent: Tensor, bias: Tensor
    ) -> Tensor:
        """`inputs` (words, dim) hold the first words of all texts, then the second ones: `sizes` of each.

        The longest text comes first. Weights and the order of the gates are torch's: i, f, g, o.
        """
        n_hidden = recurrent.shape[1]
        gates = torch.addmm(bias, inputs, into.T)  # (words, 4 x hidden), from here on in place
        cells, before = (inputs.new_zeros(len(inputs), n_hidden) for _ in range(2))
        states, last = inputs.new_zeros(2, sizes[0], n_hidden)
        maxima = inputs.new_full((sizes[0], n_hidden), -torch.inf)
        winners = torch.zeros(sizes[0], n_hidden, dtype=torch.int32, device=inputs.device)
        start = 0
        for step, size in enumerate(sizes):
            rows = slice(start, start + size)
            now = gates[rows]
            if step:
                before[rows] = states[:size]
                now.addmm_(states[:size], recurrent.T)
            now[:, : 2 * n_hidden].sigmoid_()
            now[:, 2 * n_hidden : 3 * n_hidden].tanh_()
            now[:, 3 * n_hidden :].sigmoid_()
            enters, forgets, new, leaves = now.chunk(4, dim=1)
            torch.addcmul(forgets * last[:size], enters, new, out=cells[rows])
            last = cells[rows]
            states = leaves * last.tanh()
            is_better = states > maxima[:size]
            maxima[:size] = torch.where(is_better, states, maxima[:size])
            winners[:size].masked_fill_(is_better, step)
            start += size
        ctx.save_for_backward(inputs, recurrent, gates, cells, before, winners)
        ctx.sizes = sizes
        return maxima

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the weights; the words are fixed and get none."""
        (upper,) = gradients
        inputs, recurrent, gates, cells, before, winners = ctx.saved_tensors
        n_hidden, n_words = recurrent.shape[1], len(inputs)
        of_gates = torch.empty_like(gates)
        of_states, of_cells = upper.new_zeros(2, 0, n_hidden)
        end = n_words
        for step, size in reversed(list(enumerate(ctx.sizes))):
            rows = slice(end - size, end)
            enters, forgets, new, leaves = gates[rows].chunk(4, dim=1)
            squashed = cells[rows].tanh()
            here = upper[:size] * (winners[:size] == step)
            here[: len(of_states)] += of_states
            cell = here * leaves * (1 - squashed * squashed)
            cell[: len(of_cells)] += of_cells
            found = of_gates[rows]
            enter, forget, enter_new, leave = found.chunk(4, dim=1)
            torch.mul(cell * new, enters * (1 - enters), out=enter)
            torch.mul(cell * enters, 1 - new * new, out=enter_new)
            torch.mul(here * squashed, leaves * (1 - leaves), out=leave)
            if step:
                n_before = ctx.sizes[step - 1]
                earlier = cells[end - size - n_before : end - size][:size]
                torch.mul(cell * earlier, forgets * (1 - forgets), out=forget)
                of_states, of_cells = found @ recurrent, cell * forgets
            else:
                forget.zero_()
            end -= size
        return None, None, of_gates.T @ inputs, of_gates.T @ before, of_gates.sum(dim=0)


def max_over_states(inputs: Tensor, sizes: list[int], lstm: torch.nn.LSTM, direction: str) -> Tensor:
    """The maximum of each state of one direction of an LSTM of one layer (texts, hidden)."""
    into, recurrent, first, second = (
        getattr(lstm, f"{name}_l0{direction}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    apply: Callable[..., Tensor] = MaxOverStates.apply  # torch gives it no types
    with torch.autocast(inputs.device.type, enabled=False):  # its gradient is written for one precision
        return apply(inputs, sizes, into, recurrent, first + second)
