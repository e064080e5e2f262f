"""Hosts on one machine: network namespaces on a bridge, each with its own name, /tmp and /dev/shm, the rest shared."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import ROOT

NEEDED = ("ip", "nsenter", "unshare")
BECOME = """
hostname "$1"; mount --bind "$2" /etc/hosts
new=$(mktemp -d /run/pm-host.XXXXXX); mount -t tmpfs tmpfs "$new"; chmod 1777 "$new"
for shared in $3; do mkdir -p "$new/${shared#/tmp/}"; mount --bind "$shared" "$new/${shared#/tmp/}"; done
mount --move "$new" /tmp; mount -t tmpfs tmpfs /dev/shm; chmod 1777 /dev/shm
shift 3; exec "$@"
"""


class Hosts:
    """`count` hosts NAME1.. at NET.1.., the machine itself at NET.254."""

    def __init__(self, folder: Path, name: str, count: int, net: str, shared: Sequence[Path]) -> None:
        self.name, self.count, self.net = name, count, net
        self.names = [f"{name}{i}" for i in range(1, count + 1)]
        self.file = folder / "hosts"
        lines = ["127.0.0.1 localhost", f"{net}.254 {socket.gethostname().split('.')[0]}"]
        self.file.write_text("\n".join([*lines, *(f"{net}.{i} {n}" for i, n in enumerate(self.names, 1))]) + "\n")
        under_tmp = {p.resolve() for p in [*shared, ROOT, Path(sys.prefix)] if p.resolve().is_relative_to("/tmp")}
        self.shared = " ".join(str(p) for p in sorted(under_tmp))
        self.started: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def why_not() -> str:
        """Why there can be no such hosts here; '' where there can."""
        if os.geteuid() != 0 or not all(shutil.which(name) for name in NEEDED):
            return "hosts of their own network need root and iproute2"
        made = subprocess.run(["ip", "netns", "add", "pm-try"], capture_output=True, text=True, check=False)
        subprocess.run(["ip", "netns", "del", "pm-try"], capture_output=True, check=False)
        return f"no network namespaces here: {made.stderr.strip()}" if made.returncode else ""

    def up(self) -> None:
        self.down()
        bridge = f"{self.name}br"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{self.net}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for i, space in enumerate(self._spaces(), 1):
            _ip("netns", "add", space)
            _ip("link", "add", f"{self.name}v{i}", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", f"{self.name}v{i}", "master", bridge, "up")
            _ip("-n", space, "addr", "add", f"{self.net}.{i}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "lo", "up")
            self.heal(i)

    def start(self, i: int, words: Sequence[object], log: Path, **more: str) -> subprocess.Popen[bytes]:
        """Start a program that makes host i its own (the first one decides what /tmp it has)."""
        become = ["nsenter", f"--net=/run/netns/{self._spaces()[i - 1]}", "unshare", "--mount", "--uts", "bash", "-c"]
        head = [*become, BECOME, "_", self.names[i - 1], str(self.file), self.shared]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*head, *map(str, words)], stdout=out, stderr=out, env={**os.environ, **more}, start_new_session=True
            )
        self.started.append(process)
        return process

    @staticmethod
    def hostname(pid: int) -> str:
        """The name of the host a process is on."""
        words = ["nsenter", "-t", str(pid), "--uts", "hostname"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

    def cut(self, i: int) -> None:
        _ip("-n", self._spaces()[i - 1], "link", "set", "eth0", "down")

    def heal(self, i: int) -> None:
        _ip("-n", self._spaces()[i - 1], "link", "set", "eth0", "up")
        _ip("-n", self._spaces()[i - 1], "route", "replace", "default", "via", f"{self.net}.254")

    def end_all(self, i: int) -> None:
        """End whatever still runs on host i."""
        space = self._spaces()[i - 1]
        pids = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=False).stdout
        for pid in pids.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def down(self) -> None:
        for i, space in enumerate(self._spaces(), 1):
            self.end_all(i)
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
            subprocess.run(["ip", "link", "del", f"{self.name}v{i}"], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", f"{self.name}br"], capture_output=True, check=False)
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
        self.started = []

    def _spaces(self) -> list[str]:
        return [f"pm-{name}" for name in self.names]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
