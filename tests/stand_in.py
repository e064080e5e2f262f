"""A process that stands in for a command: it asks the server of forks for one, passes signals on, and ends as it does.

    stand_in.py SOCKET WORDS...

Where this process is killed, the server sees it and kills the command.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import sys


def ask(path: str, words: list[str], environment: dict[str, str], streams: list[int]) -> socket.socket:
    """Ask the server to run a command here, with these as its input, output and errors.

    It answers two lines: the id of the process, and its exit code, a signal as a negative number.
    """
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    request = json.dumps([words, os.getcwd(), environment, sorted(os.sched_getaffinity(0))]).encode()  # noqa: PTH109
    length = len(request).to_bytes(8, "little")
    server.sendmsg([length], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))])
    server.sendall(request)
    return server


if __name__ == "__main__":
    answers = ask(sys.argv[1], sys.argv[2:], dict(os.environ), [0, 1, 2]).makefile()
    pid = int(answers.readline())
    for passed_on in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(passed_on, lambda number, _: os.kill(pid, number))
    code = int(answers.readline())
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
