"""Forty small faults in kernels, models and store, and whether the tests notice them.

    python benchmarks/mutants.py check
    python benchmarks/mutants.py run [--commit REVISION] [--unchanged] [NAME ...]

`check` looks whether every fault can still be made: its text occurs exactly once, the changed file compiles and is
another program. `run` copies a commit (HEAD, whatever the working tree has) into a temporary folder, makes one fault at
a time there, runs the tests that cover it, and prints a Markdown table of what became of it. With `--unchanged` no
fault is made: then all must survive, or else the tests fail by themselves and a catch says nothing.

The faults were chosen before the tests were read, and before they were made faster.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "parallel_mix"
LINKED = ("jobs", "slurm")
"""Folders beside the package that are installed as parts of it."""
LIMIT = 900.0
"""Seconds for the tests of one fault."""
FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
HEAD = "| mutant | file | outcome | by which test | seconds |\n|---|---|---|---|---:|"


@dataclass(frozen=True)
class Mutant:
    """One small change of arithmetic or logic, and the tests that ought to notice it."""

    name: str
    file: str  # relative to the repository's root
    old: str  # occurs once in the file
    new: str
    why: str
    tests: tuple[str, ...]  # files, folders, or file::test where the rest of the file takes minutes


MUTANTS: tuple[Mutant, ...] = (
    # kernels
    Mutant(
        name="boundary-forgotten",
        file="parallel_mix/kernels/density/ascent_rule.py",
        old="ascents.unsure[i] |= on_saddle or",
        new="ascents.unsure[i] = on_saddle or",
        why="An ascent that passed a saddle is not listed as near a boundary once it looks at its curvature again.",
        tests=(
            "tests/kernels/test_modal_em.py",
            "tests/models/test_hmac_oracle.py",
        ),
    ),
    Mutant(
        name="saddle-wrong-way",
        file="parallel_mix/kernels/density/newton_finish.py",
        old="    if drift < 0.0:",
        new="    if drift > 0.0:",
        why="An ascent on a saddle is pushed against its own drift and ends at the mode on the other side.",
        tests=(
            "tests/kernels/test_modal_em.py",
            "tests/models/test_hmac_oracle.py",
        ),
    ),
    Mutant(
        name="links-too-short",
        file="parallel_mix/kernels/density/mode_merging.py",
        old="close_pairs(ends[first], 2.0 * tolerance)",
        new="close_pairs(ends[first], tolerance)",
        why="Two cells whose nearest ends are close, but whose first ends are not, stay two modes.",
        tests=(
            "tests/kernels/test_modal_em.py",
            "tests/models/test_hmac_oracle.py",
        ),
    ),
    Mutant(
        name="lower-offset",
        file="parallel_mix/kernels/density/kernel_sums.py",
        old="offset = np.maximum(one[:, -1], other[:, -1])",
        new="offset = np.minimum(one[:, -1], other[:, -1])",
        why="Where one block of kernels is far from a point, the sum of two blocks overflows in Approach I.",
        tests=(
            "tests/kernels/test_density.py",
            "tests/models/test_hmac_oracle.py",
            "tests/models/test_hmac_result.py",
        ),
    ),
    Mutant(
        name="last-column-of-covariance",
        file="parallel_mix/kernels/density/near_sums.py",
        old="for b in range(0, also + 1, 3):",
        new="for b in range(0, also, 3):",
        why="With 1, 4, 7, ... columns the last entry of the curvature's diagonal is never summed.",
        tests=(
            "tests/kernels/test_modal_em.py",
            "tests/models/test_hmac_oracle.py",
        ),
    ),
    Mutant(
        name="never-capped",
        file="parallel_mix/kernels/density/ascents.py",
        old="iterations >= MAX_ITERATIONS",
        new="iterations > MAX_ITERATIONS",
        why="Ascents that the iteration limit ended are not reported, as none goes beyond the limit.",
        tests=(
            "tests/kernels/test_modal_em.py",
            "tests/models/test_hmac_result.py",
        ),
    ),
    Mutant(
        name="density-without-pi",
        file="parallel_mix/kernels/mixtures/hlm_mixture.py",
        old="s * np.log(np.pi * b)",
        new="s * np.log(b)",
        why="Components of different shapes are compared without a part of their constant, so posteriors are wrong.",
        tests=(
            "tests/kernels/test_hlm_mixture.py",
            "tests/models/test_hlm.py",
            "tests/models/test_hlm_incremental.py",
        ),
    ),
    Mutant(
        name="last-of-equal-medoids",
        file="parallel_mix/kernels/medoids/generalized_kmeans.py",
        old="total[i] < total[best[label[i]]]",
        new="total[i] <= total[best[label[i]]]",
        why="Of points of equal total distance the highest instead of the lowest becomes the medoid.",
        tests=(
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_distance_estimators.py",
        ),
    ),
    Mutant(
        name="stale-second-medoid",
        file="parallel_mix/kernels/medoids/vertex_substitution.py",
        old="if old == j or next_ == j:",
        new="if old == j:",
        why="A point whose second medoid was exchanged keeps the new one as its second, however far that is.",
        tests=(
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_sharded_substitution.py",
        ),
    ),
    Mutant(
        name="removal-too-dear",
        file="parallel_mix/kernels/medoids/table_substitution.py",
        old="removal[first[i]] += q2[i] - q1[i]",
        new="removal[first[i]] += q2[i]",
        why="What a medoid's removal costs is overrated, so that exchanges that would pay are not made.",
        tests=(
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_sharded_substitution.py",
            "tests/models/test_distance_estimators.py",
        ),
    ),
    Mutant(
        name="ward-wrong-mass",
        file="parallel_mix/kernels/medoids/ward_distances.py",
        old="- mass[c] * e[low, high]",
        new="- mass[low] * e[low, high]",
        why="The height of a later join is updated with the mass of the wrong cluster.",
        tests=(
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_distance_estimators.py",
        ),
    ),
    Mutant(
        name="irm-on-a-line",
        file="parallel_mix/kernels/metrics/transport.py",
        old="if v.shape[1] == 1 and not greedy:",
        new="if v.shape[1] == 1:",
        why="For signatures of single numbers the IRM distance is silently that of Mallows.",
        tests=(
            "tests/kernels/test_signatures.py",
            "tests/models/test_pairwise.py",
        ),
    ),
    Mutant(
        name="minkowski-underflow",
        file="parallel_mix/kernels/metrics/vector_distances.py",
        old="((tiny > D) | ~np.isfinite(D)).any(axis=1)",
        new="(~np.isfinite(D)).any(axis=1)",
        why="Small differences to a high power vanish, and different rows have the distance zero.",
        tests=(
            "tests/kernels/test_vector_distances.py",
            "tests/models/test_pairwise.py",
        ),
    ),
    Mutant(
        name="starts-depend-on-others",
        file="parallel_mix/kernels/medoids/starts.py",
        old="for j in range(k - 1, -1, -1):  # back in order",
        new="for j in range(k):  # back in order",
        why="A start of a clustering depends on those that the same task drew before it.",
        tests=(
            "tests/models/test_hlm.py",
            "tests/models/test_hlm_incremental.py",
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_distance_estimators.py",
        ),
    ),
    Mutant(
        name="offset-of-bound-machine",
        file="parallel_mix/kernels/similarity/support_vectors.py",
        old="(high + low) / 2.0",
        new="(high - low) / 2.0",
        why="A machine all of whose weights are at their bounds gets a wrong offset and tells other classes.",
        tests=(
            "tests/kernels/test_similarity_classifiers.py",
            "tests/models/test_similarity_classifiers.py",
        ),
    ),
    Mutant(
        name="shift-of-definite",
        file="parallel_mix/kernels/similarity/spectrum.py",
        old="lowest = np.minimum(np.linalg.eigvalsh(S)[..., :1], 0.0)",
        new="lowest = np.linalg.eigvalsh(S)[..., :1]",
        why="In a stack, matrices that are definite already are shifted down by their smallest eigenvalue.",
        tests=(
            "tests/kernels/test_similarity_classifiers.py",
            "tests/models/test_similarity_classifiers.py",
        ),
    ),
    # models
    Mutant(
        name="last-row-of-257",
        file="parallel_mix/models/hmac/climbing.py",
        old="return blocks_of(n, size)",
        new="return blocks_of(n - (n % size == 1), size)",
        why="Approach I loses the last row where it would be a block by itself.",
        tests=(
            "tests/models/test_hmac_oracle.py",
            "tests/models/test_hmac_result.py",
            "tests/kernels/test_modal_em.py",
            "tests/models/test_climbing.py",
        ),
    ),
    Mutant(
        name="spread-about-the-middle",
        file="parallel_mix/models/hmac/points.py",
        old="about=mean, power=2",
        new="about=np.zeros(d), power=2",
        why="Deviations are taken from the middle of the range, not the mean, so skewed data get other bandwidths.",
        tests=(
            "tests/models/test_hmac_result.py",
            "tests/models/test_hmac_oracle.py",
        ),
    ),
    Mutant(
        name="order-without-weights",
        file="parallel_mix/models/hmac/mode_tree.py",
        old="-np.round(log_density, digits), -self.mass)",
        new="-np.round(log_density, digits), -self.sizes)",
        why="Clusters of weighted rows are numbered by how many rows they have instead of by their weight.",
        tests=(
            "tests/models/test_hmac_oracle.py",
            "tests/models/test_hmac_result.py",
        ),
    ),
    Mutant(
        name="any-mode-will-do",
        file="parallel_mix/models/hmac/prediction.py",
        old="tree.query(ends, k=1, distance_upper_bound=MERGE_TOLERANCE)",
        new="tree.query(ends, k=1)",
        why="A new point that climbs to a mode without training points gets the label of another one instead of -1.",
        tests=("tests/models/test_hmac_result.py",),
    ),
    Mutant(
        name="equal-bandwidths",
        file="parallel_mix/models/hmac/result.py",
        old="(np.diff(sigma) <= 0).any()",
        new="(np.diff(sigma) < 0).any()",
        why="A bandwidth that is given twice is not refused.",
        tests=(
            "tests/models/test_hmac_result.py",
            "tests/jobs/test_bad_input.py::test_a_bad_option_is_a_sentence",
        ),
    ),
    Mutant(
        name="fold-leaks",
        file="parallel_mix/models/hlm/fit.py",
        old="return rows if part.fold < 0 else rows[self.folds[rows] != part.fold]",
        new="return rows",
        why="In cross-validation a model has seen the rows that it is tested on.",
        tests=(
            "tests/models/test_hlm.py",
            "tests/models/test_distance_estimators.py",
        ),
    ),
    Mutant(
        name="weights-without-root",
        file="parallel_mix/models/hlm/incremental.py",
        old="return chosen, np.sqrt(stands_for), stands_for",
        new="return chosen, stands_for, stands_for",
        why="Samples of old clusters weigh as much as all rows that they stand for, instead of the root of it.",
        tests=("tests/models/test_hlm_incremental.py",),
    ),
    Mutant(
        name="medoids-as-places",
        file="parallel_mix/models/clusters/clustering.py",
        old="list(rows[one.medoids[order]])",
        new="list(one.medoids[order])",
        why="The medoids of a group are told as places within the group instead of as rows.",
        tests=(
            "tests/models/test_distance_estimators.py",
            "tests/jobs/test_cluster_everywhere.py::test_what_is_in_a_result",
            "tests/models/test_groups.py",
        ),
    ),
    Mutant(
        name="starts-overlap",
        file="parallel_mix/models/clusters/groups.py",
        old=".advance(first * k)",
        new=".advance(first)",
        why="The starts of a later task use random numbers of earlier ones, so the series depends on how it is cut.",
        tests=(
            "tests/models/test_hlm.py",
            "tests/models/test_distance_estimators.py",
            "tests/kernels/test_distance_clusters.py",
            "tests/models/test_sharded_substitution.py",
            "tests/models/test_groups.py",
        ),
    ),
    Mutant(
        name="sums-lost-at-resume",
        file="parallel_mix/models/distances/tiles.py",
        old='np.zeros(shape[0], np.uint64) if state is None else np.array(state["sums"], np.uint64)',
        new="np.zeros(shape[0], np.uint64)",
        why="A matrix that was finished by a second attempt has checksums without the tiles of the first.",
        tests=(
            "tests/models/test_pairwise.py",
            "tests/jobs/test_distances_everywhere.py::test_killed_and_gone_on_with",
        ),
    ),
    Mutant(
        name="kernel-of-another-gamma",
        file="parallel_mix/models/similarity/svm.py",
        old="if self._last is None or self._last[0] != gamma:",
        new="if self._last is None:",
        why="Cross-validation over gamma trains every machine on the kernel of the first gamma.",
        tests=(
            "tests/models/test_similarity_classifiers.py",
            "tests/evaluate/test_crossval.py",
        ),
    ),
    Mutant(
        name="costs-transposed",
        file="parallel_mix/models/similarity/local_sda.py",
        old="-(p @ self.costs_.T)",
        new="-(p @ self.costs_)",
        why="The cost of telling f where g is true is taken for that of telling g where f is true.",
        tests=("tests/models/test_similarity_classifiers.py",),
    ),
    Mutant(
        name="settings-out-of-order",
        file="parallel_mix/models/similarity/neighbour_classifiers.py",
        old="numbers[order] = votes(",
        new="numbers[:] = votes(",
        why="Numbers of neighbours that are not given in rising order get each other's classes.",
        tests=(
            "tests/models/test_similarity_classifiers.py",
            "tests/evaluate/test_crossval.py",
            "tests/models/test_neighbour_classifiers.py",
        ),
    ),
    Mutant(
        name="diagonal-of-later-rows",
        file="parallel_mix/models/distances/checks.py",
        old="rows.diagonal(a)",
        new="rows.diagonal()",
        why="From row 257 on other entries are taken for the diagonal, which is then said not to be zero.",
        tests=(
            "tests/models/test_pairwise.py",
            "tests/store/test_stored_matrix.py",
        ),
    ),
    # store
    Mutant(
        name="replaced-run-goes-on",
        file="parallel_mix/store/checkpoints.py",
        old='int(other.get("launch", 0)) > self.launch',
        new='int(other.get("launch", 0)) < self.launch',
        why="A run that was replaced writes over the checkpoint and the status of its successor.",
        tests=(
            "tests/store/test_files.py",
            "tests/jobs/test_stops_and_faults.py::test_an_attempt_that_was_replaced_ends_itself",
        ),
    ),
    Mutant(
        name="last-rows-not-compared",
        file="parallel_mix/store/checksums.py",
        old="min(-(-last // high) * high, self.grid.rows)",
        new="min(last // high * high, self.grid.rows)",
        why="Damage in the last rows of what is read is not noticed where they do not fill a checksum's rows.",
        tests=(
            "tests/store/test_damage.py",
            "tests/store/test_stored_matrix.py",
        ),
    ),
    Mutant(
        name="order-of-the-file",
        file="parallel_mix/store/columns.py",
        old="data = [column_number(name, names, path) for name in wanted]",
        new="data = sorted(column_number(name, names, path) for name in wanted)",
        why="New rows whose columns stand in another order than the model's are predicted from swapped columns.",
        tests=("tests/store/test_columns.py",),
    ),
    Mutant(
        name="first-row-as-header",
        file="parallel_mix/store/csv_tables.py",
        old="return not any(_is_number(cell) for cell in cells)",
        new="return not all(_is_number(cell) for cell in cells)",
        why="A first row of data with one text in it is taken for a header and lost.",
        tests=(
            "tests/store/test_files.py",
            "tests/store/test_columns.py",
        ),
    ),
    Mutant(
        name="old-verdict",
        file="parallel_mix/store/guard.py",
        old="now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns",
        new="now.st_ino, now.st_size, 0, 0",
        why="A file that is damaged after a first look, without a change of its size, is taken to be sound.",
        tests=(
            "tests/store/test_damage.py",
            "tests/store/test_stored_matrix.py",
            "tests/store/test_files.py",
            "tests/store/test_changed_files.py",
        ),
    ),
    Mutant(
        name="changed-rows",
        file="parallel_mix/store/hdf5_tables.py",
        old="if dataset is None or stamp_of(Path(self.path)) != self.stamp:",
        new="if dataset is None:",
        why="A table that changes while the run lasts is read on, half of it old and half of it new.",
        tests=(
            "tests/store/test_files.py",
            "tests/store/test_damage.py",
            "tests/jobs/test_stops_and_faults.py::test_a_worker_that_cannot_see_the_file_says_so",
            "tests/store/test_changed_files.py",
        ),
    ),
    Mutant(
        name="tile-in-wrong-place",
        file="parallel_mix/store/matrix_files.py",
        old="(row * self.shape[1] + column)",
        new="(row * self.shape[0] + column)",
        why="The tiles of a matrix that is not square are written to wrong places of the file.",
        tests=(
            "tests/store/test_stored_matrix.py",
            "tests/jobs/test_distances_everywhere.py::test_what_the_kinds_hold",
            "tests/jobs/test_hlm_everywhere.py::test_distances_to_the_centroids_alone",
            "tests/jobs/test_distance_pictures.py",
        ),
    ),
    Mutant(
        name="later-format",
        file="parallel_mix/store/results.py",
        old='file.attrs.get("format", FORMAT))) > FORMAT',
        new='file.attrs.get("format", FORMAT))) < FORMAT',
        why="A result of a later format is read as if it were of this one.",
        tests=(
            "tests/store/test_files.py",
            "tests/jobs/test_bad_input.py::test_a_damaged_result_is_a_sentence",
        ),
    ),
    Mutant(
        name="only-the-last-part-finite",
        file="parallel_mix/store/stored_matrix.py",
        old="finite = finite and bool(",
        new="finite = bool(",
        why="NaN in any but the last part of a stripe of a stored matrix is not refused.",
        tests=(
            "tests/store/test_stored_matrix.py",
            "tests/jobs/test_cluster_everywhere.py::test_a_bad_wish_is_a_sentence",
            "tests/jobs/test_distances_everywhere.py::test_a_bad_wish_is_a_sentence",
        ),
    ),
    Mutant(
        name="identity-without-weights",
        file="parallel_mix/store/tables.py",
        old='sha.update(np.ascontiguousarray(weights, dtype="<f8").tobytes())',
        new='sha.update(b"weights")',
        why="A run with other weights goes on from the checkpoint of the run with the old ones.",
        tests=(
            "tests/store/test_files.py",
            "tests/jobs/test_cluster_everywhere.py::test_what_decides_a_run_is_in_its_checkpoint",
        ),
    ),
)


@dataclass(frozen=True)
class Verdict:
    """What became of one fault."""

    mutant: Mutant
    outcome: str  # caught, survived, out of time, or no verdict
    test: str
    seconds: float

    def line(self) -> str:
        """The row of the table."""
        test = self.test.replace("|", "\\|")
        return f"| {self.mutant.name} | {self.mutant.file} | {self.outcome} | {test} | {self.seconds:.0f} |"


def home_of(mutant: Mutant, root: Path) -> Path:
    """The file that holds the mutant's text once: the one it names, or where that was moved to."""
    named = root / mutant.file
    where = [named] if named.is_file() and mutant.old in named.read_text(encoding="utf-8") else files_of(root)
    holders = [path for path in where if path.read_text(encoding="utf-8").count(mutant.old) == 1]
    if len(holders) != 1:
        raise LookupError(f"{len(holders)} files hold {mutant.old!r} once, one should")
    return holders[0]


def files_of(root: Path) -> list[Path]:
    """All Python files of the package."""
    return sorted(path for path in (root / PACKAGE).rglob("*.py") if path.is_file())


def tests_of(mutant: Mutant, root: Path) -> list[str]:
    """The mutant's tests as words for pytest; a file that was moved is found by its name, a lost test by its file."""
    words = []
    for asked in mutant.tests:
        file, _, test = asked.partition("::")
        name = Path(file).name
        files = [root / file] if (root / file).exists() else sorted((root / "tests").rglob(name))
        if len(files) != 1:
            raise LookupError(f"{len(files)} tests are called {name}, one should")
        whole = not test or f"def {test}(" not in files[0].read_text(encoding="utf-8")
        words.append(str(files[0].relative_to(root)) + ("" if whole else f"::{test}"))
    return words


def mutated(mutant: Mutant, path: Path) -> str:
    """The text of the file with the fault in it, which must compile and be another program."""
    text = path.read_text(encoding="utf-8")
    changed = text.replace(mutant.old, mutant.new)
    compile(changed, str(path), "exec")
    if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text)):
        raise ValueError("the change says nothing")
    return changed


def check(root: Path) -> int:
    """Say which faults cannot be made, or have no tests; how many."""
    bad = 0
    for mutant in MUTANTS:
        try:
            home = home_of(mutant, root)
            mutated(mutant, home)
            tests_of(mutant, root)
        except (LookupError, SyntaxError, ValueError) as error:
            bad += 1
            print(f"{mutant.name}: {error}")
            continue
        if home != root / mutant.file:
            print(f"{mutant.name}: is in {home.relative_to(root)} now")
    names = len({mutant.name for mutant in MUTANTS})
    print(f"{len(MUTANTS) - bad} of {len(MUTANTS)} faults can be made; {names} names")
    return bad + len(MUTANTS) - names


def copied(folder: Path, commit: str) -> Path:
    """A copy of a commit, laid out as an installed package is; the papers' data stay where they are."""
    copy = folder / "copy"
    copy.mkdir()
    archive = folder / "copy.tar"
    subprocess.run(["git", "-C", str(ROOT), "archive", "-o", str(archive), commit], check=True)
    subprocess.run(["tar", "-xf", str(archive), "-C", str(copy)], check=True)
    for name in linked(copy):
        if not (copy / PACKAGE / name).exists():
            (copy / PACKAGE / name).symlink_to(Path("..") / name)
    if (shared := ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to(shared)
    return copy


def linked(copy: Path) -> list[str]:
    """The folders beside the package that there are."""
    return [name for name in LINKED if (copy / name).is_dir()]


def environment(copy: Path) -> dict[str, str]:
    """What the tests run in: the package is that of the copy, in their own and in all processes they start."""
    path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
    words = {**os.environ, "PYTHONPATH": path}
    names = [PACKAGE, *(f"{PACKAGE}.{name}" for name in linked(copy))]
    script = f"import {', '.join(names)} as last; print(list(last.__path__))"
    done = subprocess.run([sys.executable, "-c", script], env=words, cwd="/", capture_output=True, text=True)
    if str(copy) not in done.stdout:
        raise RuntimeError(f"the copy is not what is imported: {done.stdout}{done.stderr}")
    return words


@contextlib.contextmanager
def made(mutant: Mutant, path: Path) -> Iterator[None]:
    """The fault, while this lasts; then the file is the one of before, to its time of change."""
    before, times = path.read_bytes(), path.stat()
    path.write_text(mutated(mutant, path), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def outcome_of(tests: Sequence[str], copy: Path, words: dict[str, str], log: Path) -> tuple[str, str, float]:
    """What pytest says: the outcome, the test that failed, and how long it took."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
    with log.open("wb") as to:
        process = subprocess.Popen(
            command, cwd=copy, env=words, stdin=subprocess.DEVNULL, stdout=to, stderr=to, start_new_session=True
        )
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return "out of time", "", time.monotonic() - began
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    text, seconds = log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - began
    failed = FAILURE.search(text)
    outcome = {0: "survived", 1: "caught"}.get(code, "caught" if code == 2 and failed else "no verdict")
    if outcome == "no verdict":
        print(text[-2000:], file=sys.stderr)
    return outcome, failed[1] if failed else "", seconds


def run(names: Sequence[str], commit: str, unchanged: bool) -> int:
    """Make the faults of these names (all by default) and print what became of each; how many were not caught."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    if strange := [name for name in names if name not in known]:
        raise SystemExit(f"There is no mutant {strange[0]!r}; there are {', '.join(known)}.")
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as room:
        folder = Path(room).resolve()
        copy = copied(folder, commit)
        words = environment(copy)
        print(HEAD, flush=True)
        for name in names or known:
            home, tests = home_of(known[name], copy), tests_of(known[name], copy)
            more = {"NUMBA_CACHE_DIR": str(folder / "numba")} if "kernels" in home.relative_to(copy).parts else {}
            with contextlib.nullcontext() if unchanged else made(known[name], home):
                verdicts.append(Verdict(known[name], *outcome_of(tests, copy, words | more, folder / "log")))
            print(verdicts[-1].line(), flush=True)
    caught = sum(verdict.outcome == "caught" for verdict in verdicts)
    print(f"\n{caught} of {len(verdicts)} caught" + (", without any fault" if unchanged else ""))
    return caught if unchanged else len(verdicts) - caught


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Small faults, and whether the tests notice them.")
    kinds = parser.add_subparsers(dest="what", required=True)
    kinds.add_parser("check", help="can every fault still be made?")
    runs = kinds.add_parser("run", help="make them one by one and run the tests that cover them")
    runs.add_argument("names", nargs="*", metavar="NAME", help="mutants; all by default")
    runs.add_argument("--commit", default="HEAD", help="what is copied")
    runs.add_argument("--unchanged", action="store_true", help="run the same tests without any fault")
    words = parser.parse_args()
    sys.exit(min(check(ROOT) if words.what == "check" else run(words.names, words.commit, words.unchanged), 1))


if __name__ == "__main__":
    main()
