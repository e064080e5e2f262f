"""What mpirun starts as a rank: it has the server of ranks fork one that takes its place, and ends as that one does.

    rank.py SOCKET WORDS...

Signals are passed on. Where this process is killed, the server sees it and kills the rank.
"""

import array
import json
import os
import signal
import socket
import sys

server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
place = os.getcwd(), dict(os.environ), sorted(os.sched_getaffinity(0))  # noqa: PTH109
request = json.dumps([sys.argv[2:], *place]).encode()
streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
server.sendmsg([len(request).to_bytes(8, "little")], streams)
server.sendall(request)
answers = server.makefile()
pid = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
