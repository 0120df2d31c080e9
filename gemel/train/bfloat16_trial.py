"""Trains a small layer in bfloat16 and in float32, and prints what came of it: a program of its own.

A CPU may claim instructions that trap when they are executed: whoever asks must not be the one who dies.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from torch import Tensor, nn

WIDTH, N_TEXTS, N_TOKENS, N_TIMES = 384, 16, 32, 8


def gradient(layer: nn.Module, tokens: Tensor, uses_bfloat16: bool) -> Tensor:
    """All gradients of one pass, end to end."""
    layer.zero_grad(set_to_none=True)
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=uses_bfloat16):
        output = layer(tokens)
    torch.autograd.backward(output.float().square().mean())
    return torch.cat([value.grad.reshape(-1) for value in layer.parameters() if value.grad is not None])


def seconds(layer: nn.Module, tokens: Tensor, uses_bfloat16: bool) -> float:
    """How long one pass takes, at best."""
    taken = []
    for _ in range(N_TIMES):
        began = time.perf_counter()
        gradient(layer, tokens, uses_bfloat16)[0].item()  # which waits for a graphics card
        taken.append(time.perf_counter() - began)
    return min(taken)


if __name__ == "__main__":
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, dropout=0.0, batch_first=True).to(sys.argv[1])
    tokens = torch.randn(N_TEXTS, N_TOKENS, WIDTH, device=sys.argv[1])
    exact, rough = gradient(layer, tokens, False), gradient(layer, tokens, True)
    speedup = seconds(layer, tokens, False) / seconds(layer, tokens, True)
    cosine = float(torch.nn.functional.cosine_similarity(exact, rough, dim=0))
    sys.stdout.write(json.dumps({"cosine": cosine, "speedup": speedup}) + "\n")
