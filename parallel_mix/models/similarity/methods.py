"""The classifiers on similarities and on vectors that cross-validation knows by name, with the papers' grids."""

from __future__ import annotations

from functools import partial

from parallel_mix.models.core.methods import EITHER, method_of
from parallel_mix.models.similarity.classifiers import MOST_STEPS

NEIGHBOURS = (*range(1, 17), 32, 64, 128)
LOCAL_NEIGHBOURS = (2, 4, 8, 16, 32, 64, 128)
RIDGES = tuple(10.0**k for k in range(1, -4, -1))  # of equal errors the first: the larger ridge
WIDE_RIDGES = (1e3, 1e2, *RIDGES)
"""The ridges of interpolation, whose weights go on changing as they grow: on protein the folds choose 100."""
PENALTIES = tuple(10.0**k for k in range(-3, 6))
WIDTHS = tuple(10.0**k for k in range(-5, 2))
PRICES = tuple(round(0.1 * k, 1) for k in range(10, 0, -1))
SHARES = (1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9)

_neighbours = partial(method_of, n_neighbors=NEIGHBOURS)
_local_machine = partial(method_of, where="parallel_mix:LocalSVC", n_neighbors=NEIGHBOURS, C=PENALTIES)
_machine = partial(method_of, where="parallel_mix:SimilaritySVC", C=PENALTIES)
_features = partial(method_of, where="parallel_mix:FeatureSVC")
_sda = partial(method_of, where="parallel_mix:LocalSDAClassifier", n_neighbors=LOCAL_NEIGHBOURS)
_vectors = partial(method_of, where="sklearn.svm:SVC", takes="vectors")

METHODS = (
    _neighbours("knn", "k-NN", "parallel_mix:KNNClassifier", takes=EITHER),
    _neighbours("affinity-knn", "affinity k-NN", "parallel_mix:AffinityKNNClassifier"),
    _neighbours("kri-knn", "KRI k-NN (clip)", "parallel_mix:KRIKNNClassifier", ridge=WIDE_RIDGES),
    _neighbours("krr-knn", "KRR k-NN (pinv)", "parallel_mix:KRRKNNClassifier", ridge=RIDGES),
    *(
        _local_machine(f"svm-knn-{change}", f"SVM-KNN ({change})", change=change)
        for change in ("clip", "flip", "shift", "features")
    ),
    *(
        _machine(f"svm-{change}", f"SVM-similarities as kernel ({change})", change=change)
        for change in ("clip", "flip", "shift")
    ),
    _features("svm-features-linear", "SVM-similarities as features (linear)", C=PENALTIES, kernel="linear"),
    _features("svm-features-rbf", "SVM-similarities as features (rbf)", gamma=WIDTHS, C=PENALTIES, kernel="rbf"),
    method_of("psvm", "P-SVM", "parallel_mix:PotentialSVC", C=PENALTIES, eps=PRICES),
    _sda("sda", "Local SDA"),
    _sda("sda-marginal", "regularized local SDA (marginal)", estimate="marginal", zeta=SHARES),
    _sda("sda-joint", "regularized local SDA (joint)", estimate="joint", zeta=SHARES),
    _sda("sda-bayesian", "Bayesian local SDA", estimate="bayesian"),
    _sda("sda-pairwise", "pairwise local SDA", pairwise=True),
    _sda("sda-pairwise-bayesian", "pairwise Bayesian local SDA", pairwise=True, estimate="bayesian"),
    _vectors("svm-linear", "SVM (linear)", kernel="linear", max_iter=MOST_STEPS, C=PENALTIES),
    _vectors("svm-rbf", "SVM (rbf)", kernel="rbf", max_iter=MOST_STEPS, gamma=WIDTHS, C=PENALTIES),
    _neighbours("knn-vectors", "k-NN (vectors)", "parallel_mix:VectorKNNClassifier", takes="vectors"),
)
