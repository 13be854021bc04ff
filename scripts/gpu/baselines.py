"""Makes training steps of PyTorch on a GPU when scripts/gpu/speed requests them.

The models are those of scripts/peers/step/step.py: the MLP 784-128-128-10 with dropout and
Adam, and the ConvNet with SGD. Both have batches of 128, cross-entropy, and data on the
device. A third model has four square layers of 4096, with SGD.

Requests and replies are lines of JSON on stdin and stdout, see speed/torch.go. The process
ends when stdin does.
"""

import json
import os
import sys
import time

import torch
from torch import nn

DEVICE = "cuda"
BATCH = 128


def mlp():
    return nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
    )


def convnet():
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 3, 3), nn.MaxPool2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(192, 10)
    )


def square():
    return nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(4)])


class Step:
    """One training step on fixed memory."""

    def __init__(self, build, optimizer, options, rows=BATCH, width=784, classes=10, dtype=torch.float32):
        torch.manual_seed(0)
        self.model = build().to(DEVICE, dtype)
        self.loss = nn.CrossEntropyLoss()
        self.x = torch.randn(rows, width, device=DEVICE, dtype=dtype)
        self.y = torch.randint(classes, (rows,), device=DEVICE)
        self.optimizer = optimizer(self.model.parameters(), lr=1e-3, **options)

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()


def eager(step):
    return step


def compiled(mode):
    def make(step):
        step.model = torch.compile(step.model, mode=mode)
        return step
    return make


def captured(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    # A graph does not own the memory that it was captured with. If the step were freed,
    # another way could get its memory, and a replay would overwrite that way's labels.
    def replay(owner=step):
        graph.replay()
    return replay


def measure(run, steps):
    """Returns the mean time of a step in microseconds."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps * 1e6


FOREACH, FUSED = {"foreach": True}, {"fused": True}
# Compiling takes longest, so it comes last.
WAYS = {
    "eager, foreach optimizer": (FOREACH, eager),
    "eager, fused optimizer": (FUSED, eager),
    "whole step in one CUDA graph, fused optimizer": (FUSED, captured),
    "torch.compile, fused optimizer": (FUSED, compiled("default")),
    "torch.compile reduce-overhead, fused optimizer": (FUSED, compiled("reduce-overhead")),
}


def step_of(model, numbers, options):
    if model == "MLP":
        return Step(mlp, torch.optim.Adam, options)
    if model == "ConvNet":
        return Step(convnet, torch.optim.SGD, options)
    return Step(square, torch.optim.SGD, options, 4096, 4096, 4096, torch.bfloat16 if numbers == "bf16" else torch.float32)


def ways_of(model, numbers):
    """Returns the ways for a model. Compiling is slow, so compiled ways are only for fp32."""
    if model == "square":
        return ["eager, fused optimizer"]
    return [name for name in WAYS if numbers == "fp32" or not name.startswith("torch.compile")]


def answer(request, prepared):
    if "list" in request:
        prepared.clear()
        if "torch._dynamo" in sys.modules:  # importing it takes seconds
            torch._dynamo.reset()
        torch.cuda.empty_cache()
        tf32 = request["numbers"] != "fp32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        return {"ways": ways_of(request["list"], request["numbers"])}
    if "prepare" in request:
        name, model = request["prepare"], request["model"]
        options, make = WAYS[name]
        if make is captured and model == "MLP":  # Adam counts steps
            options = {**options, "capturable": True}
        run = make(step_of(model, request["numbers"], options))
        measure(run, 3)  # compiles
        prepared[name] = run
        return {}
    return {"us": measure(prepared[request["run"]], request["steps"])}


def main():
    # Compilers print to stdout too. Replies go to a copy of stdout, everything else to stderr.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if not torch.cuda.is_available():
        print(json.dumps({"error": "PyTorch finds no GPU"}), file=replies)
        return
    print(json.dumps({"torch": torch.__version__}), file=replies)
    prepared = {}
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line), prepared)
        except Exception as error:  # some ways may not work here
            reply = {"error": " ".join(str(error).split())[:300] or type(error).__name__}
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main()
