#!/usr/bin/env python3
"""Compares ringtrain's two tasks on CSV files with scikit-learn's MLPClassifier and MLPRegressor.

    scripts/peers/columns.py [--seeds N] [--epochs N] [--points P] [--ringtrain PROGRAM]

It needs scikit-learn, whose data sets it writes as CSV files: iris, wine, breast cancer and digits (accuracy), diabetes (R2).
Both programs train one hidden layer of 32 Relus by Adam, with the same learning rate, batch size, number of epochs and
held-out rows, without regularization. Columns are standardised over the training rows; ringtrain does that itself. Two things
are made equal that usually are not:

- scikit-learn ends each epoch with a smaller batch, whose few rows move the weights as far as others do. ringtrain has no such
  batches. So the training rows are a multiple of the batch size.
- scikit-learn draws initial biases like weights, uniformly up to the square root of 6/(inputs + outputs). ringtrain's are zero,
  as in Thinc, and so are the weights of Softmax. So ringtrain is told to draw all of them in this way.

What differs are the random numbers, of initial weights and of the order of rows, so the figures are medians over the seeds.

Without --ringtrain it builds the program in this repository. Prints a Markdown table. Exit code 1 if a median of ringtrain is
more than P points below or above scikit-learn's, 2 for wrong usage.
"""

import argparse
import csv
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy
import sklearn
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

ROOT = pathlib.Path(__file__).resolve().parents[2]
HIDDEN, BATCH, RATE, HELD = 32, 16, 0.001, 0.2
GLOROT = '{"@initializers": "glorot_uniform_init.v1"}'
SETS = [
    ("iris", datasets.load_iris, True),
    ("wine", datasets.load_wine, True),
    ("breast cancer", datasets.load_breast_cancer, True),
    ("digits", datasets.load_digits, True),
    ("diabetes", datasets.load_diabetes, False),
]


def write(path, names, x, y):
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow([*names, "target"])
        for row, target in zip(x, y):
            out.writerow([*(repr(float(v)) for v in row), target])


def by_sklearn(classes, train, test, seed, epochs):
    scale = StandardScaler().fit(train[0])
    model = (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(HIDDEN,), activation="relu", solver="adam", alpha=0, batch_size=BATCH, learning_rate_init=RATE,
        max_iter=epochs, tol=0, n_iter_no_change=epochs + 1, random_state=seed)
    y, held = train[1], test[1]
    if not classes:
        y, held = (y - train[1].mean()) / train[1].std(), (held - train[1].mean()) / train[1].std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is to stop after these epochs
        model.fit(scale.transform(train[0]), y)
    return model.score(scale.transform(test[0]), held)


def by_ringtrain(program, classes, folder, rows, seed, epochs):
    config, last = ("classify.cfg", "classes") if classes else ("regression.cfg", "value")
    initial = [part for layer in ("hidden", last) for key in ("init_W", "init_b") for part in (f"--model.*.{layer}.{key}", GLOROT)]
    steps = epochs * rows // BATCH
    done = subprocess.run(
        [program, "train", ROOT / "examples" / config, "--data", f"csv:{folder}/train.csv", "--test-data", f"{folder}/test.csv",
         "--target", "target", "--json", "--seed", str(seed), "--steps", str(steps), "--batch", str(BATCH),
         "--evaluation.frequency", "0", "--model.*.hidden.nO", str(HIDDEN), "--optimizer.learn_rate", str(RATE),
         "--optimizer.grad_clip", "0", "--optimizer.use_averages", "false", "--device", "cpu", *initial],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["accuracy" if classes else "r2"]


def compare(program, load, classes, folder, seeds, epochs):
    bunch = load()
    x, y = bunch.data, bunch.target
    order = numpy.random.default_rng(0).permutation(len(x))
    held = round(HELD * len(x))
    used = held + (len(x) - held) // BATCH * BATCH
    test, train = (x[order[:held]], y[order[:held]]), (x[order[held:used]], y[order[held:used]])
    write(f"{folder}/train.csv", bunch.feature_names, *train)
    write(f"{folder}/test.csv", bunch.feature_names, *test)
    theirs = [by_sklearn(classes, train, test, s, epochs) for s in range(seeds)]
    ours = [by_ringtrain(program, classes, folder, len(train[0]), s, epochs) for s in range(seeds)]
    return len(train[0]), held, statistics.median(ours), statistics.median(theirs)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--seeds", type=int, default=9)
    flags.add_argument("--epochs", type=int, default=200)
    flags.add_argument("--points", type=float, default=2)
    flags.add_argument("--ringtrain")
    f = flags.parse_args()
    if min(f.seeds, f.epochs) < 1:
        flags.error("--seeds and --epochs must be at least 1")
    apart = []
    with tempfile.TemporaryDirectory() as folder:
        program = f.ringtrain
        if not program:
            program = f"{folder}/ringtrain"
            subprocess.run(["go", "build", "-o", program, "./cmd/ringtrain"], cwd=ROOT, check=True)
        print(f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}; medians of {f.seeds} seeds, {f.epochs} epochs\n")
        print("| data | rows | held out | measure | ringtrain | scikit-learn |\n|---|---:|---:|---|---:|---:|")
        for name, load, classes in SETS:
            rows, held, ours, theirs = compare(program, load, classes, folder, f.seeds, f.epochs)
            print(f"| {name} | {rows} | {held} | {'accuracy' if classes else 'R²'} | {ours:.4f} | {theirs:.4f} |", flush=True)
            if abs(ours - theirs) > f.points / 100:
                apart.append(name)
    if apart:
        print(f"columns.py: more than {f.points:g} points from scikit-learn: {', '.join(apart)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
