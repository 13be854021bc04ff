"""Trains the perceptron of examples/mnist.cfg with DistributedDataParallel over Gloo.

    ddp.py DIR WORKERS STEPS

DIR has the IDX files of "ringtrain data digits". As in ringtrain, every worker is a
process with one thread and all rows in memory, and takes 128 rows of its own per
step. Prints one JSON object with the fields of main.go.
"""

import gzip
import json
import os
import sys
import tempfile
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

ROWS, FEATURES, WIDTH, CLASSES = 128, 784, 128, 10


def read(directory, part):
    """Returns the images and labels of a part, train or t10k, without the IDX headers."""
    def data(kind, header):
        with gzip.open(os.path.join(directory, f"{part}-{kind}-ubyte.gz")) as file:
            return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)
    return data("images-idx3", 16).view(-1, FEATURES).float() / 255, data("labels-idx1", 8).to(torch.int64)


def network():
    """Returns relu_relu_softmax.v1 of Thinc's example; cross_entropy adds the softmax."""
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(WIDTH, CLASSES),
    )


def work(rank, directory, workers, steps, meeting, results):
    """Is one worker. Worker 0 writes the result."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x, labels = read(directory, "train")
    distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=workers)
    net = DistributedDataParallel(network())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    order, taken = torch.randperm(len(x)), 0  # the same on all workers
    distributed.barrier()
    begin = time.perf_counter()
    for _ in range(steps):
        if taken + workers * ROWS > len(x):
            order, taken = torch.randperm(len(x)), 0
        mine = order[taken + rank * ROWS:][:ROWS]
        taken += workers * ROWS
        optimizer.zero_grad()
        functional.cross_entropy(net(x[mine]), labels[mine]).backward()
        optimizer.step()
    distributed.barrier()
    seconds = time.perf_counter() - begin
    if rank == 0:
        x, labels = read(directory, "t10k")
        net.eval()
        with torch.no_grad():
            loss = functional.cross_entropy(net.module(x), labels).item()
        with open(results, "w") as file:
            json.dump({
                "workers": workers, "steps": steps, "samples_per_second": steps * workers * ROWS / seconds,
                "loss": loss,
                "about": "PyTorch " + torch.__version__ + ", DistributedDataParallel over Gloo",
            }, file)
    distributed.destroy_process_group()


def main(directory, workers, steps):
    """Starts the workers and prints the result."""
    with tempfile.TemporaryDirectory() as scratch:
        results = os.path.join(scratch, "result.json")
        arguments = (directory, int(workers), int(steps), os.path.join(scratch, "meeting"), results)
        multiprocessing.spawn(work, arguments, nprocs=int(workers))
        with open(results) as file:
            print(file.read())


if __name__ == "__main__":
    main(*sys.argv[1:])
