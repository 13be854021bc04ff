"""Times one training step of PyTorch on a GPU, in the ways that people run it.

The models are those of scripts/peers/step/step.py, the MLP 784-128-128-10 with dropout
and Adam and the ConvNet with SGD, batch 128, cross-entropy, data on the device; and a
square MLP of 4096 with SGD. Writes Markdown. A way that fails says so in its cell; the
exit code is then 1.

--json FILE writes the measurements there too, for scripts/gpu/speed.
"""

import argparse
import json
import sys
import time

import torch
from torch import nn

DEVICE = "cuda"
BATCH = 128
WARMUP, STEPS, ROUNDS = 20, 200, 5


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
    return graph.replay


def measure(run, steps=STEPS):
    """The least mean time of a step, in microseconds, over a few rounds."""
    for _ in range(min(WARMUP, steps)):
        run()
    torch.cuda.synchronize()
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(steps):
            run()
        torch.cuda.synchronize()
        least = min(least, (time.perf_counter() - begin) / steps)
    return least * 1e6


MODELS = [("MLP", mlp, torch.optim.Adam), ("ConvNet", convnet, torch.optim.SGD)]
FOREACH, FUSED = {"foreach": True}, {"fused": True}
WAYS = [
    ("eager, foreach optimizer", FOREACH, eager),
    ("eager, fused optimizer", FUSED, eager),
    ("torch.compile, fused optimizer", FUSED, compiled("default")),
    ("torch.compile reduce-overhead, fused optimizer", FUSED, compiled("reduce-overhead")),
    ("whole step in one CUDA graph, fused optimizer", FUSED, captured),
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", metavar="FILE")
    given = arguments.parse_args()
    failed = False
    rows = []

    def cell(make):
        nonlocal failed
        try:
            return make()
        except Exception as error:  # one way of five may not work here
            failed = True
            return "failed: " + " ".join(str(error).split())[:80].replace("|", "/")
        finally:
            torch._dynamo.reset()
            torch.cuda.empty_cache()

    print(f"\n## PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print(f"Microseconds of a step: forward, backward and update, batch {BATCH}, data on the device; the least of {ROUNDS} means over {STEPS} steps.\n")
    print("| model | way | fp32 | TF32 |")
    print("|---|---|---|---|")
    for name, build, optimizer in MODELS:
        for way, options, make in WAYS:
            if make is captured and optimizer is torch.optim.Adam:
                options = {**options, "capturable": True}
            times = []
            for tf32 in (False, True):
                torch.backends.cuda.matmul.allow_tf32 = tf32
                torch.backends.cudnn.allow_tf32 = tf32

                def timed():
                    us = measure(make(Step(build, optimizer, options)))
                    rows.append({"model": name, "way": way, "numbers": "TF32" if tf32 else "fp32", "us": us})
                    return f"{us:.1f}"

                times.append(cell(timed))
            print(f"| {name} | {way} | {times[0]} | {times[1]} |", flush=True)

    print("\nFour layers of 4096 x 4096 without biases, batch 4096: forward, backward and SGD, eager. They are 4 + 4 + 3 = 11 products of 4096^3.\n")
    print("| numbers | ms | TFLOP/s |")
    print("|---|---|---|")
    for numbers, tf32, dtype in (("fp32", False, torch.float32), ("TF32", True, torch.float32), ("bf16", True, torch.bfloat16)):
        torch.backends.cuda.matmul.allow_tf32 = tf32

        def one():
            us = measure(Step(square, torch.optim.SGD, FUSED, 4096, 4096, 4096, dtype), steps=10)
            rows.append({"model": "square", "way": "eager, fused optimizer", "numbers": numbers, "us": us})
            return f"{us / 1e3:.2f} | {11 * 2 * 4096**3 / us / 1e6:.0f}"

        text = cell(one)
        print(f"| {numbers} | {text} |" if "|" in text else f"| {numbers} | {text} | |", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file)
    return 1 if failed else 0


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("\n## PyTorch\n\nnot measured: this PyTorch sees no GPU")
        sys.exit(1)
    sys.exit(main())
