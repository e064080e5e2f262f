"""Are the results of this checkout those of an earlier commit, bit for bit, but for `/run` and checksums?

python benchmarks/same_results.py COMMIT [KEEP]      KEEP: a folder in which the results of both stay

One result of each kind, and of each way to make one, from small data of all kinds; csv files byte for byte.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    "convert a.csv -o a.h5 --labels y",
    "hmac a.h5 -o hmac.h5 --levels 5 --labels y",
    "hmac a.csv -o hmac-1.h5 --levels 4 --labels y --approach 1 --standardize",
    "hmac ships.csv -o ships.h5 --row-names design --labels kind --standardize",
    "hmac a.h5 -o flat.h5 --levels 3 --labels y --flat --no-data",
    "predict hmac.h5 b.csv -o predicted.csv",
    "export hmac.h5 -o labels.csv --level all",
    "distances a.h5 -o D.h5 --labels y",
    "distances a.h5 -o single.h5 --metric cityblock --single --labels y",
    "distances b.csv a.h5 -o rectangle.h5 --metric minkowski --p 2.5",
    "distances S.h5 -o mallows.h5 --metric mallows",
    "distances texts.txt -o edit.h5 --metric edit",
    "distances votes.csv -o vdm.h5 --metric vdm --labels party",
    "distances a.h5 -o neighbours.h5 --knn 4 --labels y",
    "cluster D.h5 -o clusters.h5 --clusters 2,3,5",
    "cluster D.h5 -o ward.h5 --clusters 3 --method ward",
    "cluster D.h5 -o by-class.h5 --clusters 2 --by-class y",
    "export clusters.h5 -o clusters.csv",
    "hlm fit D.h5 --labels y -o hlm.h5 --select 1..2,kernel",
    "hlm fit D.h5 --labels y -o hlm-keep.h5 --components 2 --keep",
    "hlm update hlm-keep.h5 D2.h5 --labels y -o updated.h5",
    "predict hlm.h5 D.h5 -o classes.csv",
    "crossval D.h5 --labels y -o crossval.h5 --classifiers knn,hlm-vsh,hlm-kernel,sda,svm-clip --partitions 3",
    "crossval votes.csv --metric vdm --labels party -o votes.h5 --classifiers knn --partitions 2",
    "table crossval.h5 -o table.csv",
)
NOT_COMPARED = ("run", "seconds")


def make_data(folder: Path) -> None:
    """Tables, signatures, texts and votes."""
    r = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = r.normal(size=(120, 3)) + 4.0 * y[:, None]
    lines = [",".join([*(f"{value:.6f}" for value in row), f"c{label}"]) for row, label in zip(X, y, strict=True)]
    (folder / "a.csv").write_text("\n".join(["one,two,three,y", *lines]) + "\n")
    (folder / "b.csv").write_text("\n".join(["one,two,three", *(line.rsplit(",", 1)[0] for line in lines[::7])]) + "\n")
    (folder / "ships.csv").write_bytes((ROOT / "examples" / "ships.csv").read_bytes())
    (folder / "texts.txt").write_text("\n".join("".join(r.choice(list("abcd"), 6)) for _ in range(40)) + "\n")
    votes = r.choice(["y", "n", "?"], size=(60, 5))
    party = np.where(votes[:, 0] == "y", "d", "r")
    rows = [",".join([p, *row]) for p, row in zip(party, votes, strict=True)]
    (folder / "votes.csv").write_text("\n".join(["party,a,b,c,d,e", *rows]) + "\n")
    with h5py.File(folder / "S.h5", "w") as file:
        file["values"], file["weights"], file["offsets"] = X, np.tile([0.25, 0.75], 60), np.arange(0, 121, 2)
    near = np.linalg.norm(X[:, None] + 0.3 - X[None] + r.normal(size=X.shape)[:, None], axis=2)
    with h5py.File(folder / "D2.h5", "w") as file:
        file["distances"], file["y"] = (near + near.T) / 2 * (1 - np.eye(120)), [f"c{label}" for label in y]


def make_results(source: Path, folder: Path) -> None:
    """Run all commands with the package of a checkout."""
    folder.mkdir(parents=True)
    make_data(folder)
    for link in ("jobs", "slurm"):
        if not (source / "parallel_mix" / link).exists():
            (source / "parallel_mix" / link).symlink_to(source / link)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    for words in COMMANDS:
        command = [sys.executable, "-m", "parallel_mix", *words.split()]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{words}: {done.stderr.strip().splitlines()[-1]}")


def checkout_of(commit: str, folder: Path) -> Path:
    """The files of a commit in a folder of their own."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive, check=True)
    return folder


def contents(path: Path) -> dict[str, bytes]:
    """All that is compared of a file, by name."""
    if path.suffix != ".h5":
        return {"": path.read_bytes()}
    parts: dict[str, bytes] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if name.split("/")[0] in NOT_COMPARED:
            return
        parts.update({f"{name}@{key}": repr(value).encode() for key, value in item.attrs.items() if key != "path"})
        if isinstance(item, h5py.Dataset):
            values = item[()]
            parts[name] = (
                repr(np.asarray(values).tolist()).encode() if item.dtype == object else np.asarray(values).tobytes()
            )

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    parts.pop("@checksums", None)
    return parts


def main() -> None:
    """A line for each file that was made, and exit code 1 where any differs."""
    commit = sys.argv[1]
    keep = Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    before, after = keep / "before", keep / "after"
    make_results(checkout_of(commit, keep / "checkout"), before)
    make_results(checkout_of("HEAD", keep / "head"), after)
    outputs = [words.split()[words.split().index("-o") + 1] for words in COMMANDS]
    different = 0
    for name in outputs:
        if not ((before / name).exists() and (after / name).exists()):
            differences = [
                "is missing on one side" if (before / name).exists() != (after / name).exists() else "no result"
            ]
        else:
            a, b = contents(before / name), contents(after / name)
            differences = sorted(key for key in {*a, *b} if a.get(key) != b.get(key))
        different += bool(differences)
        print(f"{name}: {'equal' if not differences else 'differs: ' + ', '.join(differences[:6])}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
