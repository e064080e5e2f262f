"""The image: linted, built and run, and a SLURM of its containers on hosts of their own.

Building takes buildah, root, and the base image: in PARALLEL_MIX_IMAGES, a storage folder of buildah's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import BIN, ROOT, assert_same_result
from tests.slurm.hosts import Hosts

DOCKER = ROOT / "docker"
BASE = "docker.io/library/python:3.11-slim-bookworm"
STORAGE = os.environ.get("PARALLEL_MIX_IMAGES", "/var/lib/parallel-mix-images")
BUILDAH = ["buildah", "--storage-driver", "vfs", "--root", f"{STORAGE}/root", "--runroot", f"{STORAGE}/run"]
PARTS = ("head", "worker1", "worker2")


def test_the_dockerfile_is_sound() -> None:
    done = subprocess.run([BIN / "hadolint", DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if shutil.which("shellcheck"):
        words = ["shellcheck", DOCKER / "entrypoint", DOCKER / "healthy"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_file_follows_the_schema() -> None:
    words = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DOCKER / "compose.yml"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_versions_are_pinned() -> None:
    pins = (DOCKER / "constraints.txt").read_text().splitlines()
    assert all("==" in pin for pin in pins)
    assert {"numpy", "h5py", "mpi4py", "openmpi"} <= {pin.split("==")[0] for pin in pins}


Buildah = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def buildah() -> Buildah:
    if os.geteuid() != 0 or not shutil.which("buildah"):
        pytest.skip("building an image takes buildah and root")

    def run(*more: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*BUILDAH, *more], capture_output=True, text=True, timeout=timeout, cwd=ROOT)

    if run("inspect", "--type", "image", BASE).returncode:
        pytest.skip(f"the base image is not here: set PARALLEL_MIX_IMAGES to a buildah storage that has {BASE}")
    for target in ("app", "cluster"):
        options = ["--isolation", "chroot", "--pull=never", "--format", "docker", "--target", target]
        done = run("build", *options, "-t", f"parallel-mix-{target}", "-f", "docker/Dockerfile", ".")
        assert done.returncode == 0, done.stderr[-3000:]
    return run


@pytest.fixture
def container(buildah: Buildah) -> Iterator[Callable[[str], str]]:
    made: list[str] = []

    def begin(image: str) -> str:
        made.append(buildah("from", "--pull=never", f"localhost/{image}").stdout.strip())
        return made[-1]

    yield begin
    for name in made:
        buildah("rm", name)


def test_the_image_runs_without_root(buildah: Buildah, container: Callable[[str], str]) -> None:
    script = """
        id -u; parallel-mix --version; healthy && echo healthy; cd /data
        python -c "import numpy as np; np.save('t.npy', np.random.default_rng(0).normal(size=(300, 3)))"
        parallel-mix hmac t.npy -o serial.h5 --quiet && mpirun -n 2 --oversubscribe parallel-mix hmac t.npy -o o.h5
        command -v srun scontrol
    """
    name = container("parallel-mix-app")
    done = buildah("run", "--isolation", "chroot", "--user", "mix", name, "--", "entrypoint", "sh", "-ec", script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "1000"
    assert "healthy" in done.stdout
    assert "mpi, 2 at a time" in done.stderr
    config = buildah("inspect", "--type", "image", "localhost/parallel-mix-app").stdout
    assert '"HEALTHCHECK"' in config.upper() or '"Healthcheck"' in config


def test_a_slurm_of_containers(buildah: Buildah, container: Callable[[str], str], tmp_path: Path) -> None:
    if reason := Hosts.why_not():
        pytest.skip(reason)
    shared = Path("/srv") / f"parallel-mix-test-{os.getpid()}"
    shared.mkdir()
    os.chown(shared, 1000, 1000)
    hosts = Hosts(tmp_path, "c", 3, "10.91.0", [])
    lines = [f"10.91.0.{i} {name}" for i, name in enumerate(PARTS, 1)]
    hosts.file.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")
    run = [*BUILDAH, "run", "--isolation", "chroot", "--user", "mix", "-v", f"{shared}:/shared"]
    names = [container("parallel-mix-cluster") for _ in PARTS]

    def on_head(command: str) -> str:
        enter = ["nsenter", "-t", str(hosts.started[0].pid), "--net", "--uts", "--mount"]
        more = ["--hostname", "head", "--workingdir", "/shared", names[0], "--", "bash", "-ec", command]
        done = subprocess.run([*enter, *run, *more], capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    try:
        hosts.up()
        for i, (part, name) in enumerate(zip(PARTS, names, strict=True), 1):
            role = "head" if part == "head" else "worker"
            hosts.start(i, [*run, "--hostname", part, name, "--", "entrypoint", role], tmp_path / f"{part}.log")
        until = time.monotonic() + 90
        look = "timeout 5 sinfo -h -N -t idle -o %N && timeout 5 healthy || true"
        while len(set((said := on_head(look)).split())) != 2:
            logs = "".join(path.read_text()[-800:] for path in tmp_path.glob("*.log"))
            assert time.monotonic() < until, said + logs
            time.sleep(1.0)
        said = on_head(
            "python -c \"import numpy as np; np.save('t.npy', np.random.default_rng(0).normal(size=(2000, 4)))\"\n"
            "parallel-mix hmac t.npy -o serial.h5 --quiet\n"
            "parallel-mix submit --nodes 2 --ntasks-per-node 2 -- hmac t.npy -o out.h5\n"
            "for k in $(seq 60); do [ -e out.h5 ] && break; sleep 1; done; cat hmac-*.log"
        )
        assert "mpi, 4 at a time" in said, said
        assert_same_result(shared / "serial.h5", shared / "out.h5")
    finally:
        sys.stdout.write("".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in tmp_path.glob("*.log")))
        hosts.down()
        shutil.rmtree(shared)
