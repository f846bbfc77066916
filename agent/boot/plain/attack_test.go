// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/embedded"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// run runs a command and returns what it wrote.
func run(t testing.TB, c *agent.Client, cmd agent.Command) string {
	t.Helper()
	cmd.ID = sandbox.NewProcessID()
	p, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return follow(t, p, io.EOF)
}

// follow reads until what was written has the end, or the process has.
func follow(t testing.TB, p *agent.Process, until any) string {
	t.Helper()
	var out strings.Builder
	for {
		f, err := p.Next(t.Context())
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(f.Data)
		if end, ok := until.(string); ok && strings.HasSuffix(out.String(), end) {
			return out.String()
		}
	}
}

func rooted(t *testing.T) *box {
	return start(t, plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey()}, syscall.CLONE_NEWPID)
}

// The container's root can connect, and gets 37 bytes that are no use to it.
func TestRootAtTheDoorGetsNothing(t *testing.T) {
	b := rooted(t)
	const attack = `import socket
hello = b'\x00\x00\x00\x05sbpt\x01'
call = b'{"op":"start","id":"abcdefgh12345678","start":{"shell":"touch /tmp/mine"}}'
call = bytes([2]) + len(call).to_bytes(3, 'big') + call
for name, say in {'a call': hello + call, 'zeros': bytes(65), 'its own words': None, 'nothing': b''}.items():
    s = socket.socket(socket.AF_UNIX)
    s.connect('/agent/socket')
    s.settimeout(20)
    got = s.recv(37, socket.MSG_WAITALL)
    s.sendall(got + got if say is None else say)
    s.shutdown(socket.SHUT_WR)
    try: rest = s.recv(1000)
    except ConnectionResetError: rest = b''
    print(name, len(got), len(rest))`
	got := run(t, b.client, agent.Command{Argv: []string{"python3", "-c", attack}, User: "root"})
	if want := "a call 37 0\nzeros 37 0\nits own words 37 0\nnothing 37 0\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if got := run(t, b.client, agent.Command{Shell: "ls /tmp"}); got != "" {
		t.Errorf("something was done: %s", got)
	}
}

// between is a program that takes the agent's place at its socket: it keeps what it hears, and changes
// what the server says when it is told to.
const between = `import os, socket, threading
os.rename('/agent/socket', '/agent/behind')
l = socket.socket(socket.AF_UNIX); l.bind('/agent/socket'); l.listen(50)
heard = open('/agent/heard', 'ab', 0)
def pump(a, b, change):
    said = 0
    while True:
        d = a.recv(65536)
        if not d: break
        heard.write(d)
        if change and said >= 65 and os.path.exists('/agent/change'):
            d = d[:-1] + bytes([d[-1] ^ 1])
        said += len(d)
        b.sendall(d)
    b.shutdown(socket.SHUT_WR)
print('ready', flush=True)
while True:
    c, _ = l.accept()
    s = socket.socket(socket.AF_UNIX); s.connect('/agent/behind')
    threading.Thread(target=pump, args=(c, s, True), daemon=True).start()
    threading.Thread(target=pump, args=(s, c, False), daemon=True).start()`

// Root can put itself between the server and the agent. It hears nothing there, and can say nothing.
func TestRootBetweenServerAndAgentLearnsNothing(t *testing.T) {
	b := rooted(t)
	p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"python3", "-c", between}, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	follow(t, p, "ready\n")
	const secret = "hunter2hunter2hunter2"
	got := run(t, b.client, agent.Command{Shell: "echo $SECRET", Env: map[string]string{"SECRET": secret}})
	if got != secret+"\n" {
		t.Fatalf("what goes through it does not arrive: %q", got)
	}
	heard, err := os.ReadFile(b.path("heard"))
	if err != nil || len(heard) < 300 {
		t.Fatalf("it heard %d bytes (%v)", len(heard), err)
	}
	for _, word := range []string{secret, "echo", `"op"`, "SECRET"} {
		if bytes.Contains(heard, []byte(word)) {
			t.Errorf("it heard %q", word)
		}
	}
	if err := os.WriteFile(b.path("change"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a call that was changed: %v", err)
	}
}

// A program of root's that takes the agent's place and knows no key is told nothing.
func TestRootInTheAgentsPlaceIsToldNothing(t *testing.T) {
	b := rooted(t)
	const place = `import os, socket
os.rename('/agent/socket', '/agent/behind')
l = socket.socket(socket.AF_UNIX); l.bind('/agent/socket'); l.listen(50)
print('ready', flush=True)
c, _ = l.accept()
c.sendall(b'sbph\x01' + bytes(32))
got = c.recv(65, socket.MSG_WAITALL)
c.sendall(got[33:])
while True:
    d = c.recv(100)
    if not d: break
    got += d
print(len(got), flush=True)`
	p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"python3", "-c", place}, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	follow(t, p, "ready\n")
	_, err = b.client.Ping(t.Context())
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, handshake.ErrImpostor) {
		t.Errorf("got %v", err)
	}
	if got := follow(t, p, io.EOF); got != "65\n" {
		t.Errorf("it was told %s bytes", got)
	}
}

func TestOverAnAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	b := start(t, plain.Config{UID: 1000, GID: 1000, Address: addr, Key: handshake.NewKey()}, syscall.CLONE_NEWPID)
	if got := run(t, b.client, agent.Command{Shell: "echo over TCP"}); got != "over TCP\n" {
		t.Errorf("got %q", got)
	}
}

// A program beside the agent reaches its socket for who has nothing but the program's streams.
func TestThroughARelay(t *testing.T) {
	b := rooted(t)
	program, err := embedded.Program()
	if err != nil {
		t.Fatal(err)
	}
	file := b.path("relay")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	var began []*exec.Cmd
	d := mux.NewDialer((&handshake.Dialer{Key: b.config.Key, What: handshake.ManyCalls, Dial: func(context.Context) (net.Conn, error) {
		cmd := exec.Command(file, "relay", b.path("socket"))
		nc := throughStdio(t, cmd)
		began = append(began, cmd)
		return nc, cmd.Start()
	}}).DialContext)
	c := agent.NewClient(d.DialContext)
	for range 3 {
		if got := run(t, c, agent.Command{Shell: "echo through it"}); got != "through it\n" {
			t.Errorf("got %q", got)
		}
	}
	_ = began[0].Process.Kill() // as whoever carries it may
	_ = began[0].Wait()
	var again error
	for range 2 { // the first may find out that the stream broke
		if _, again = c.Ping(t.Context()); again == nil {
			break
		}
	}
	if again != nil || len(began) != 2 {
		t.Errorf("%d relays, %v", len(began), again)
	}
	_ = d.Close()
	if err := began[len(began)-1].Wait(); err != nil {
		t.Errorf("a relay that nobody needs any more: %v", err)
	}
}

// A download that nobody reads on holds up no call beside it, and is whole.
func TestALargeDownloadBesideCalls(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000, Stdio: true, Key: handshake.NewKey()}, syscall.CLONE_NEWPID)
	const size = 256 << 20
	run(t, b.client, agent.Command{Shell: "truncate -s 256M /workspace/large"})
	_, r, err := b.client.ReadFile(t.Context(), "/workspace/large", sandbox.ReadFileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got := run(t, b.client, agent.Command{Shell: "echo small"}); got != "small\n" {
			t.Fatalf("got %q", got)
		}
	}
	if n, err := io.Copy(io.Discard, r); n != size-1<<20 || err != nil {
		t.Errorf("%d bytes more, %v", n, err)
	}
}
