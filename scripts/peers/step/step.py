"""Times one training step of PyTorch, as Command step times ringtrain's.

    step.py mlp|convnet FILE [STEPS]

FILE is from "step batches". The program writes one JSON object to stdout, with the
fields of clock.go. PyTorch runs in eager mode with one thread. All other options
have their defaults.
"""

import ctypes
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

WARM_UP, LAST_STEPS = 30, 20  # as in clock.go
ROWS, SIDE, CLASSES, COUNT = 128, 28, 10, 64  # as in batches.go


def mlp():
    """Returns relu_relu_softmax.v1 of Thinc's example, with Adam."""
    net = nn.Sequential(
        nn.Linear(SIDE * SIDE, 128), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(128, CLASSES),
    )
    return net, torch.optim.Adam(net.parameters(), lr=0.001), functional.cross_entropy


class ConvNet(nn.Module):
    """The network of Ray's parameter server example."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, kernel_size=3)
        self.fc = nn.Linear(192, CLASSES)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 3))
        return functional.log_softmax(self.fc(x.view(-1, 192)), dim=1)


def convnet():
    """Returns the ConvNet, with plain SGD."""
    net = ConvNet()
    return net, torch.optim.SGD(net.parameters(), lr=0.01), functional.nll_loss


def read(name, shape):
    """Returns the batches of a file: images in the given shape, labels, and all weights."""
    with open(name, "rb") as file:
        data = bytearray(file.read())
    x = torch.frombuffer(data, dtype=torch.float32, count=COUNT * ROWS * SIDE * SIDE)
    labels = torch.frombuffer(data, dtype=torch.int32, count=COUNT * ROWS, offset=4 * len(x))
    weights = torch.frombuffer(data, dtype=torch.float32, offset=4 * (len(x) + len(labels)))
    return x.view(COUNT, *shape), labels.to(torch.int64).view(COUNT, ROWS), weights


def begin_with(nets, weights):
    """Sets the initial weights of networks, which follow one another."""
    with torch.no_grad():
        for parameter in (p for net in nets for p in net.parameters()):
            mine, weights = weights[: parameter.numel()], weights[parameter.numel():]
            parameter.copy_(mine.view_as(parameter))
    assert not len(weights), "the file does not fit the models"


def blas():
    """Returns the library that multiplies matrices, and the processor that it detected."""
    lines = torch.__config__.show()
    if "BLAS_INFO=mkl" in lines:
        return "MKL"
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libblas.so" in line or "/libopenblas" in line}
    for path in sorted(paths):  # libblas.so.3 first, because PyTorch is linked with it
        library = ctypes.CDLL(path)
        try:
            library.openblas_get_corename.restype = ctypes.c_char_p
            return "OpenBLAS for " + library.openblas_get_corename().decode()
        except AttributeError:
            continue
    return "BLAS " + (", ".join(sorted(paths)) or "unknown")


def main(model, name, counted=300):
    """Measures a model and prints the record."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    models = {"mlp": mlp(), "convnet": convnet()}  # in the order of the file
    net, optimizer, criterion = models[model]
    x, labels, weights = read(name, (ROWS, SIDE * SIDE) if model == "mlp" else (ROWS, 1, SIDE, SIDE))
    begin_with([each[0] for each in models.values()], weights)
    if model == "convnet":
        x = (x - 0.1307) / 0.3081  # as the example does; ringtrain does it in the step
    batches = [(x[i].clone(), labels[i].clone()) for i in range(COUNT)]
    took, losses = [], []
    for i in range(WARM_UP + int(counted)):
        rows, right = batches[i % COUNT]
        begin = time.perf_counter_ns()
        optimizer.zero_grad()
        loss = criterion(net(rows), right)
        loss.backward()
        optimizer.step()
        took.append((time.perf_counter_ns() - begin) / 1000)
        losses.append(loss.item())
    took = took[WARM_UP:]
    print(json.dumps({
        "model": model, "median_us": statistics.median(took), "least_us": min(took), "steps": len(took),
        "first_loss": losses[0], "last_loss": statistics.fmean(losses[-LAST_STEPS:]),
        "about": "PyTorch " + torch.__version__ + ", " + blas(),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
