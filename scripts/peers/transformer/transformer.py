"""Trains the model of transformer.cfg in PyTorch, with the same weights and rows.

    transformer.py WEIGHTS BATCHES STEPS

WEIGHTS is a safetensors file of ringtrain with the initial weights, BATCHES comes from
"transformer batches". The program writes the events of "ringtrain train --json" that
table.go reads. PyTorch runs in eager mode with one thread.
"""

import json
import math
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, DEPTH = 128, 4, 4  # as in transformer.cfg
RATE, WARM_UP, TOTAL = 0.002, 100, 1000
BETA2, EPS = 0.999, 1e-8  # Thinc adds EPS before the bias correction, PyTorch after it
EVALUATED = 64  # rows at once


class Block(nn.Module):
    """Causal self-attention and a perceptron, with LayerNorm before each."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, positions, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(rows, positions, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, positions, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """The network. Its parameters are in the order of ringtrain's."""

    def __init__(self, ids, positions):
        super().__init__()
        self.ids = nn.Embedding(ids, WIDTH)
        self.positions = nn.Embedding(positions, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.next = nn.Linear(WIDTH, ids)

    def forward(self, x):
        x = self.ids(x) + self.positions.weight
        return self.next(self.norm(self.blocks(x))).flatten(0, 1)


def begin_with(net, name):
    """Sets the weights to those of a safetensors file."""
    with open(name, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = sorted(header.values(), key=lambda t: t["data_offsets"][0])
    with torch.no_grad():
        for parameter, tensor in zip(net.parameters(), tensors, strict=True):
            assert list(parameter.shape) == tensor["shape"] and tensor["dtype"] == "F32"
            at = tensor["data_offsets"][0]
            parameter.copy_(torch.frombuffer(data, dtype=torch.float32, count=parameter.numel(), offset=at).view_as(parameter))


def read(name):
    """Returns the number of ids, the batches of all steps, and the held-out rows."""
    with open(name, "rb") as file:
        words = torch.frombuffer(bytearray(file.read()), dtype=torch.int32).to(torch.int64)
    ids, positions, steps = words[:3].tolist()
    batches, at = [], 3
    for _ in range(steps + 1):  # the last one is held out
        rows = int(words[at])
        end = at + 1 + rows * (positions + 1)
        text = words[at + 1:end].view(rows, positions + 1)
        batches.append((text[:, :-1].contiguous(), text[:, 1:].contiguous().flatten()))
        at = end
    return ids, batches[:-1], batches[-1]


def rate(step):
    """Returns the learning rate: warmup_linear.v1."""
    if step < WARM_UP:
        return RATE * step / WARM_UP
    return RATE * (TOTAL - step) / (TOTAL - WARM_UP)


def bits(net, x, labels):
    """Returns the mean loss in bits per character."""
    total, positions = 0.0, x.shape[1]
    with torch.no_grad():
        for lo in range(0, len(x), EVALUATED):
            right = labels[lo * positions:(lo + EVALUATED) * positions]
            total += functional.cross_entropy(net(x[lo:lo + EVALUATED]), right, reduction="sum").item()
    return total / len(labels) / math.log(2)


def main(weights, name, steps):
    """Trains and prints the events."""
    torch.set_num_threads(1)
    ids, batches, held_out = read(name)
    net = Transformer(ids, batches[0][0].shape[1])
    begin_with(net, weights)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, betas=(0.9, BETA2), fused=True)
    losses, seconds = [], []
    begin = time.perf_counter()
    for step, (x, labels) in enumerate(batches[:int(steps)]):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
            group["eps"] = EPS / math.sqrt(1 - BETA2 ** (step + 1))
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    for step, each in enumerate(zip(losses, seconds), 1):
        print(json.dumps({"event": "step", "step": step, "loss": each[0], "seconds": each[1]}))
    print(json.dumps({"event": "result", "bits_per_character": bits(net, *held_out)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
