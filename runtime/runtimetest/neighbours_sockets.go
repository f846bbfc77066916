// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// floods fill the queues of sockets that nobody reads. A child does it, since a limit may end
// it for that. Without a bound the first three hold more than twice the sandbox's limit.
var floods = []struct {
	name   string
	counts string // the line of /proc/net/sockstat that tells what the host's sockets of the kind hold; empty: none does
	flood  string
	use    string
}{
	{"TCP", "TCP:", `
l = socket.create_server(('127.0.0.1', 0), backlog=400)
while len(kept) < 250:
    c = socket.create_connection(l.getsockname()); kept.append((c, l.accept()[0])); c.setblocking(False)
    try:
        while True: c.send(b'x' * 1000000)
    except BlockingIOError: pass
`, `l = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(l.getsockname(), 5); s, _ = l.accept()
c.sendall(b'x' * 4000); assert len(s.recv(4000, socket.MSG_WAITALL)) == 4000`},
	{"TCPOfLargeBuffers", "TCP:", `
l = socket.create_server(('127.0.0.1', 0), backlog=400)
l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
while len(kept) < 150:
    c = socket.socket(); c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22); c.connect(l.getsockname())
    kept.append((c, l.accept()[0])); c.setblocking(False)
    try:
        while True: c.send(b'x' * 1000000)
    except BlockingIOError: pass
`, `l = socket.create_server(('127.0.0.1', 0))
socket.create_connection(l.getsockname(), 5)`},
	{"UDP", "UDP:", `
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while len(kept) < 300:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); kept.append(s)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    for _ in range(250): a.sendto(b'x' * 8000, s.getsockname())
`, `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.settimeout(5)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', s.getsockname()); assert s.recv(1) == b'x'`},
	{"Netlink", "", `
ask = struct.pack('IHHIIBBHiII', 32, 18, 5, 1, 0, 0, 0, 0, 1, 0, 0) # a link, and an acknowledgement
while len(kept) < 250:
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.setblocking(False); kept.append(s)
    for _ in range(300): s.send(ask)
`, `assert netlink(18, 0x301, struct.pack('BBHiII', 0, 0, 0, 0, 0, 0))`},
}

// uncounted are floods of what the kernel counts in no limit of memory. They go on until they are
// ended.
var uncounted = []struct{ name, flood string }{
	{"ConnectionsThatNobodyAccepts", `
import socket
kept = []
while True:
    l = socket.create_server(('127.0.0.1', 0), backlog=4096); kept.append(l)
    for _ in range(4000):
        c = socket.create_connection(l.getsockname()); c.setblocking(False)
        try: c.send(b'x' * 65536)
        except BlockingIOError: pass
        c.close()
`},
	{"ConnectionsByIPv6ThatNobodyAccepts", `
import socket
kept = []
while True:
    l = socket.create_server(('::1', 0), family=socket.AF_INET6, backlog=4096); kept.append(l)
    for _ in range(4000): socket.create_connection(l.getsockname()[:2]).close()
`},
	{"NetlinkAnswersThatNobodyReads", `
import socket, struct, time
kept = []
while True:
    if len(kept) > 4000: time.sleep(600)
    s = socket.socket(16, 3, 0); s.setsockopt(1, 8, 1 << 30); s.bind((0, 0)); s.setblocking(False); kept.append(s)
    for n in range(2000):
        try: s.send(struct.pack('IHHIIBxxxiII', 32, 18, 0x301, n, 0, 0, 0, 0, 0))
        except OSError: break
`},
}

// uncountedFloods has one sandbox fill what no limit counts, which ends its commands as the limit
// of memory does, also those that left their process behind, and nobody else's.
func uncountedFloods(t *testing.T, s *suite) {
	for _, f := range uncounted {
		t.Run(f.name+"EndTheCommands", func(t *testing.T) {
			s.need(t, runtime.LimitMemory)
			one, two := s.create(t, s.spec()), s.create(t, s.spec())
			for name, command := range map[string]agent.Command{
				"a command":           {Argv: []string{"python3", "-c", f.flood}},
				"what a command left": {Shell: `setsid python3 -c "$FLOOD" & sleep 600`, Env: map[string]string{"FLOOD": f.flood}},
			} {
				command.Timeout = time.Minute
				o := one.exec(command)
				if o.ExitCode != 137 || o.Cause != sandbox.CauseOOM || !strings.Contains(o.CauseDetail, "no limit of memory") {
					t.Errorf("%s: got exit code %d, cause %q (%s), want 137 and oom for its sockets; stderr %q", name, o.ExitCode, o.Cause, o.CauseDetail, o.Stderr)
				}
				one.ok("echo the sandbox lives on; ! pgrep python3")
				two.ok("echo so do the others")
			}
		})
	}
}

// socketFloods has one sandbox fill sockets, which must hold no more of the host's memory
// than its limit, and a quarter for what the kernel forces into them past it, and leave the
// neighbour its own.
func socketFloods(t *testing.T, s *suite) {
	for _, f := range floods {
		t.Run("FloodingOnesOwn"+f.name+"LeavesTheOthers", func(t *testing.T) {
			s.need(t, runtime.LimitMemory)
			one, two := s.create(t, s.spec()), s.create(t, s.spec())
			use := func() string { return two.python(t, "sandbox", nil, []string{f.use})[0] }
			if got := use(); got != done {
				t.Fatalf("before: got %q, want it to work", got)
			}
			before := held(t, f.counts)
			one.holds(t, `
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
r, w = os.pipe()
if os.fork() == 0:
    kept = []
    try:
`+indent(f.flood)+`
    except OSError: pass
    os.write(w, b'%d' % len(kept))
    time.sleep(600)
os.close(w)
if int(os.read(r, 20) or b'1') == 0: raise Mistake('nothing was filled')
`, "sandbox")
			if got, most := held(t, f.counts)-before, int64(s.spec().Limits.MemoryMB)<<18*5; got > most {
				t.Errorf("its sockets hold %d MiB of the host's memory, more than %d MiB", got>>20, most>>20)
			} else if f.counts != "" {
				t.Logf("its sockets hold %d MiB", got>>20)
			}
			if got := use(); got != done {
				t.Errorf("while another sandbox floods: got %q, want %q", got, done)
			}
		})
	}
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n        ") }

// held is how many bytes sockets of a kind hold on the whole host.
func held(t *testing.T, kind string) int64 {
	t.Helper()
	if kind == "" {
		return 0
	}
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != kind {
			continue
		}
		for i := range fields[:len(fields)-1] {
			if fields[i] == "mem" {
				pages, err := strconv.ParseInt(fields[i+1], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return pages * int64(os.Getpagesize())
			}
		}
	}
	t.Fatalf("the kernel tells nothing of %s in\n%s", kind, text)
	return 0
}
