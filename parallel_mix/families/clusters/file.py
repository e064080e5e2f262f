"""Results of `parallel-mix cluster`: one clustering, or several by their numbers of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.models.clusters.clustering import Clustering
from parallel_mix.store.results import Tree, read_result

LAYOUT = (
    ("/cluster@method, @clusters, @restarts, @seed, @symmetrize, @by_class, @classes", "what decided the clusters"),
    ("/cluster/labels (n)", "the cluster of each row; 0 is the largest"),
    ("/cluster/centroids (k)", "the medoids as rows, counted from 0"),
    ("/cluster/sizes (k)", "the rows of each cluster"),
    ("/cluster/classes (k)", "with `--by-class`: the class of each cluster"),
    ("/cluster@loss", "the total distance of all rows to their medoids, times their weights"),
    ("/cluster/004/...", "the same for each number of clusters, where several were asked for"),
    (
        "/data/y, rows, w; @path, @dataset, @digest",
        "classes, names and weights of rows; where the distances are",
    ),
)


def tree_of(clusterings: dict[int, Clustering], decided: dict[str, Any], classes: list[str] | None) -> Tree:
    """The groups of a result; `classes` are names of the groups that were clustered each by itself."""
    tree: Tree = {f"@{name}": value for name, value in decided.items() if value is not None}
    if len(clusterings) == 1:
        tree |= _tree_of_one(next(iter(clusterings.values())), classes)
    else:
        tree |= {f"{count:03d}": _tree_of_one(clustering, classes) for count, clustering in clusterings.items()}
    return {"cluster": tree}


def _tree_of_one(clustering: Clustering, classes: list[str] | None) -> Tree:
    tree: Tree = {
        "labels": clustering.labels.astype(np.int32),
        "centroids": clustering.medoids,
        "sizes": clustering.sizes,
        "@loss": clustering.loss,
    }
    if classes is not None:
        tree["classes"] = [classes[group] for group in clustering.groups]
    return tree


@dataclass(frozen=True)
class StoredClustering:
    """One clustering as it was written."""

    count: int
    labels: np.ndarray
    centroids: np.ndarray
    sizes: np.ndarray
    loss: float
    classes: list[str] | None

    @classmethod
    def from_tree(cls, tree: Tree) -> StoredClustering:
        """From its group in the file."""
        classes = [str(name, "utf-8") for name in tree["classes"]] if "classes" in tree else None
        labels, centroids, sizes = (tree[name] for name in ("labels", "centroids", "sizes"))
        return cls(len(centroids), labels, centroids, sizes, float(tree["@loss"]), classes)


def read_clusterings(path: Path) -> list[StoredClustering]:
    """All clusterings of a result, by rising number of clusters."""
    tree = read_result(path, "clusters")
    groups = [tree] if "labels" in tree else [value for value in tree.values() if isinstance(value, dict)]
    return sorted(map(StoredClustering.from_tree, groups), key=lambda clustering: clustering.count)
