// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/handshake"
)

// tries is a program that asks for sockets of all kinds, by each of its threads.
const tries = `import ctypes, errno, os, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
call = lambda n, *a: 'DONE' if libc.syscall(n, *map(ctypes.c_long, a)) >= 0 else errno.errorcode[ctypes.get_errno()]
SOCKET = {'x86_64': 41, 'aarch64': 198}[os.uname().machine]
def tell():
    others = {call(SOCKET, f, k, 0) for f in range(46) if f not in (1, 2, 10, 16) for k in (1, 2, 3, 5)}
    protocols = {call(SOCKET, f, k, p) for f in (2, 10) for k, p in ((1, 132), (2, 136), (2, 115), (6, 33))}
    netlink = {call(SOCKET, 16, 3, p) for p in range(40) if p not in (0, 4, 15)}
    ring = {call(n, 1, 0) for n in (425, 426, 427)}
    ordinary = {call(SOCKET, *a) for a in ((1, 1, 0), (1, 2, 0), (2, 1, 0), (2, 1, 6), (2, 2, 17), (10, 1, 0), (10, 2, 0), (16, 3, 0), (16, 3, 4))}
    print(others, protocols, netlink, ring, ordinary, call(SOCKET, 1 << 32 | 40, 1, 0), flush=True)
tell()
t = threading.Thread(target=tell); t.start(); t.join()
if os.fork() == 0:
    tell(); os._exit(0)
os.wait()`

func TestCommandsHaveFewKindsOfSockets(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey(), FewSockets: true}, syscall.CLONE_NEWPID)
	const one = "{'EPERM'} {'EPERM'} {'EPROTONOSUPPORT'} {'EPERM'} {'DONE'} EPERM\n"
	for _, user := range []string{"", "root"} {
		if got := run(t, b.client, agent.Command{Argv: []string{"python3", "-c", tries}, User: user}); got != one+one+one {
			t.Errorf("as %q:\n%s", user, got)
		}
	}
}
