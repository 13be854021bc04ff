"""Trains with a parameter server that is an actor of Ray, as Ray's and Thinc's notebooks do.

    parameter_server.py NETWORK MODE DIR WORKERS ITERATIONS [curve]

NETWORK is perceptron (Thinc, Adam) or convnet (PyTorch, SGD). With MODE sync, the server
sums the gradients of all workers in each iteration; with async, it applies each as soon as
it comes, and there are ITERATIONS * WORKERS updates. DIR has the IDX files of "ringtrain
data digits". As in ringtrain, every process has one thread and all rows in memory, and a
batch has 128 rows. Unlike Thinc's notebook, workers zero their gradients. Prints one JSON
object with the fields of main.go. With curve, it evaluates after every ten updates, as the
notebooks do, and first prints an object for each evaluation.
"""

import gzip
import json
import os
import sys
import time

import numpy
import ray

ROWS, SIDE, CLASSES = 128, 28, 10
READ_EVERY = 10  # updates after which the notebooks read the weights and evaluate


def read(directory, part):
    """Returns the pixels, from 0 to 1, and the labels of a part, train or t10k."""
    def data(kind, header):
        with gzip.open(os.path.join(directory, f"{part}-{kind}-ubyte.gz")) as file:
            return numpy.frombuffer(file.read(), dtype=numpy.uint8)[header:]
    pixels = data("images-idx3", 16).reshape(-1, SIDE * SIDE).astype(numpy.float32) / 255
    return pixels, data("labels-idx1", 8).astype(numpy.int64)


class Perceptron:
    """relu_relu_softmax.v1 of Thinc's notebook."""

    def __init__(self):
        from thinc.api import Adam, Relu, Softmax, chain
        self.model = chain(Relu(128, dropout=0.2), Relu(128, dropout=0.2), Softmax())
        self.model.initialize(X=numpy.zeros((5, SIDE * SIDE), "f"), Y=numpy.zeros((5, CLASSES), "f"))
        self.optimizer = Adam()
        self.arrays = [(node, name) for node in self.model.walk() for name in node.param_names]

    def seed(self, seed):
        from thinc.api import fix_random_seed
        fix_random_seed(seed)

    def weights(self):
        return [node.get_param(name) for node, name in self.arrays]

    def set_weights(self, weights):
        for (node, name), value in zip(self.arrays, weights):
            node.set_param(name, value)

    def gradients(self, pixels, labels):
        for node, name in self.arrays:
            if node.has_grad(name):
                node.get_grad(name)[...] = 0
        guesses, backprop = self.model(pixels, is_train=True)
        backprop((guesses - numpy.eye(CLASSES, dtype="f")[labels]) / len(labels))
        return [node.get_grad(name) for node, name in self.arrays]

    def update(self, gradients):
        for (node, name), value in zip(self.arrays, gradients):
            node.set_grad(name, value)
        self.model.finish_update(self.optimizer)

    def classify(self, pixels):
        return self.model.predict(pixels).argmax(axis=1)

    @staticmethod
    def about():
        import thinc
        return "Thinc " + thinc.__version__


class ConvNet:
    """The network of Ray's notebook; cross_entropy adds the softmax."""

    def __init__(self):
        import torch
        from torch import nn
        torch.set_num_threads(1)
        self.torch = torch
        self.net = nn.Sequential(
            nn.Conv2d(1, 3, kernel_size=3), nn.MaxPool2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(192, CLASSES),
        )
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def seed(self, seed):
        self.torch.manual_seed(seed)

    def weights(self):
        return self.net.state_dict()

    def set_weights(self, weights):
        self.net.load_state_dict(weights)

    def images(self, pixels):
        return (self.torch.from_numpy(pixels).view(-1, 1, SIDE, SIDE) - 0.1307) / 0.3081

    def gradients(self, pixels, labels):
        self.net.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.net(self.images(pixels)), self.torch.from_numpy(labels))
        loss.backward()
        return [p.grad.numpy() for p in self.net.parameters()]

    def update(self, gradients):
        for p, value in zip(self.net.parameters(), gradients):
            p.grad = self.torch.from_numpy(value)
        self.optimizer.step()

    def classify(self, pixels):
        with self.torch.no_grad():
            return self.net(self.images(pixels)).argmax(dim=1).numpy()

    @staticmethod
    def about():
        import torch
        return "PyTorch " + torch.__version__


NETWORKS = {"perceptron": Perceptron, "convnet": ConvNet}


@ray.remote
class Server:
    """Holds the weights and the optimizer."""

    def __init__(self, network):
        self.net = NETWORKS[network]()

    def weights(self):
        return self.net.weights()

    def apply(self, *gradients):
        """Applies the sum of the gradients of some workers, and returns the new weights."""
        self.net.update([numpy.sum(same, axis=0) for same in zip(*gradients)])
        return self.net.weights()


@ray.remote
class Worker:
    """Computes gradients on batches of all rows, in an order of its own."""

    def __init__(self, network, directory, seed):
        self.net = NETWORKS[network]()
        self.net.seed(seed)
        self.random = numpy.random.default_rng(seed)
        self.pixels, self.labels = read(directory, "train")
        self.order = self.random.permutation(len(self.labels))

    def ready(self):
        return True

    def gradients(self, weights):
        """Returns the gradients of the next batch."""
        self.net.set_weights(weights)
        if len(self.order) < ROWS:
            self.order = self.random.permutation(len(self.labels))
        batch, self.order = self.order[:ROWS], self.order[ROWS:]
        return self.net.gradients(self.pixels[batch], self.labels[batch])


def sync(server, workers, iterations, see):
    """Returns the weights after as many updates as there are iterations. Every READ_EVERY
    updates it calls see with their number and the weights."""
    weights = server.weights.remote()
    for i in range(iterations):
        weights = server.apply.remote(*[worker.gradients.remote(weights) for worker in workers])
        if (i + 1) % READ_EVERY == 0:
            see(i + 1, ray.get(weights))
    return ray.get(weights)


def asynchronous(server, workers, iterations, see):
    """Returns the weights after an update for every worker in each iteration."""
    weights = server.weights.remote()
    busy = {worker.gradients.remote(weights): worker for worker in workers}
    for i in range(iterations * len(workers)):
        first = ray.wait(list(busy))[0][0]
        worker = busy.pop(first)
        weights = server.apply.remote(first)
        busy[worker.gradients.remote(weights)] = worker
        if (i + 1) % READ_EVERY == 0:
            see(i + 1, ray.get(weights))
    return ray.get(weights)


def main(network, mode, directory, workers, iterations, curve=""):
    """Starts the actors, trains, evaluates and prints the result."""
    workers, iterations = int(workers), int(iterations)
    ray.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False, object_store_memory=10**9)
    server = Server.remote(network)
    actors = [Worker.remote(network, os.path.abspath(directory), seed) for seed in range(workers)]
    ray.get([server.weights.remote()] + [worker.ready.remote() for worker in actors])
    net = NETWORKS[network]()
    pixels, labels = read(directory, "t10k")

    def accuracy(weights):
        net.set_weights(weights)
        return float((net.classify(pixels) == labels).mean())

    def see(update, weights):
        if curve:
            print(json.dumps({"event": "eval", "step": update, "accuracy": accuracy(weights)}))

    begin = time.perf_counter()
    weights = {"sync": sync, "async": asynchronous}[mode](server, actors, iterations, see)
    seconds = time.perf_counter() - begin
    print(json.dumps({
        "workers": workers, "steps": iterations * (workers if mode == "async" else 1),
        "samples_per_second": iterations * workers * ROWS / seconds,
        "accuracy": accuracy(weights),
        "about": f"Ray {ray.__version__}, {net.about()}",
    }))
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
