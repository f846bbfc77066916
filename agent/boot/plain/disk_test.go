// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func withDisk(t *testing.T) *box {
	return start(t, plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey(), Home: "/home/sandbox", Disk: []string{"/workspace", "/home"}}, syscall.CLONE_NEWPID)
}

// states are those of all processes in the container but the agent, by what they run.
func (b *box) states(t *testing.T) map[string]string {
	t.Helper()
	inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", b.pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if ns, err := os.Readlink(dir + "/ns/pid"); err != nil || ns != inside || dir == "/proc/"+strconv.Itoa(b.pid) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		line, err2 := os.ReadFile(dir + "/cmdline")
		if err == nil && err2 == nil {
			all[filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))] = string(stat[bytes.LastIndexByte(stat, ')')+2])
		}
	}
	return all
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatalf("it never came to this: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestAllStandsStillWhileADiskIsRead(t *testing.T) {
	b := withDisk(t)
	begin := func(shell string) {
		t.Helper()
		p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: shell})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		follow(t, p, "ready\n")
	}
	run(t, b.client, agent.Command{Shell: "head -c 64M /dev/urandom > large"}) // more than the connection takes by itself
	begin(`sleep 1000 & kill -STOP $!; echo $! > stopped; echo ready; wait`)
	begin(`echo ready; n=0; while :; do n=$((n + 1)); echo $n > count.new; mv count.new count; done`)
	// Parents that wait in the kernel for a child which has not executed its program yet, and threads.
	begin(`echo ready; exec python3 -c '
import subprocess, threading
def many():
    while True: subprocess.run(["/bin/true"])
for n in range(3): threading.Thread(target=many).start()'`)
	state := func() string {
		return run(t, b.client, agent.Command{Shell: `sed 's/.*) \(.\).*/\1/' /proc/$(cat stopped)/stat`})
	}
	eventually(t, "it is stopped", func() bool { return state() == "T\n" })
	for range 5 {
		r, err := b.client.ReadDisk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for who, state := range b.states(t) {
			if !strings.Contains("TtZX", state) {
				t.Errorf("%s is in state %s", who, state)
			}
		}
		started := make(chan string)
		go func() { started <- run(t, b.client, agent.Command{Shell: "echo started"}) }()
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.Ping(t.Context()); err != nil { // the agent itself answers
			t.Error(err)
		}
		select {
		case got := <-started:
			t.Errorf("a command began meanwhile: %q", got)
		default:
		}
		_ = r.Close() // as a server that is killed does
		if got := <-started; got != "started\n" {
			t.Errorf("then: %q", got)
		}
		first := run(t, b.client, agent.Command{Shell: "cat count"})
		eventually(t, "the writer goes on", func() bool { return run(t, b.client, agent.Command{Shell: "cat count"}) != first })
	}
	if got := state(); got != "T\n" {
		t.Errorf("what was stopped before is %q", got)
	}
}

func TestADiskIsFilledAsItWasRead(t *testing.T) {
	b := withDisk(t)
	const look = `cd /; find workspace home/other -printf '%p %y %m %U:%G %s %T@ %n %l\n' | grep -v '^[^ ]* d ' | sort; cat workspace/f home/other; du -k workspace/holes | cut -f1; ls -A workspace home`
	run(t, b.client, agent.Command{User: "root", Shell: `cd /workspace; echo hello > f; ln f /workspace/g; truncate -s 1G holes; echo end >> holes; mkfifo -m 640 p; ln -s /etc/passwd l
echo other > /home/other; chown 12:34 /home/other; chmod 4755 /home/other; mkdir -m 2750 d; d=.; for i in $(seq 400); do mkdir d; cd d; done; echo deep > deep`})
	want := run(t, b.client, agent.Command{Shell: look, User: "root"})
	r, err := b.client.ReadDisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if len(archive) > 10<<20 {
		t.Errorf("the archive of a file with holes has %d bytes", len(archive))
	}
	run(t, b.client, agent.Command{User: "root", Shell: "rm -r /workspace/f /workspace/holes /home/sandbox; echo new > /workspace/new; mkdir /home/sandbox; echo > /home/sandbox/new"})
	if err := b.client.FillDisk(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	if got := run(t, b.client, agent.Command{Shell: look, User: "root"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := b.client.FillDisk(t.Context(), bytes.NewReader(archive[:len(archive)/2])); !fault.Is(err, fault.Invalid) {
		t.Errorf("half of it: %v", err)
	}
	if err := b.client.FillDisk(t.Context(), bytes.NewReader(make([]byte, 1024))); err != nil {
		t.Errorf("an empty disk: %v", err)
	}
	if got := run(t, b.client, agent.Command{Shell: "ls -A; cd; pwd; ls -A; echo mine > mine && cat mine"}); got != "/home/sandbox\nmine\n" {
		t.Errorf("an empty disk has %q", got)
	}
}

func TestAnAgentWithoutADiskSaysSo(t *testing.T) {
	b := rooted(t)
	if _, err := b.client.ReadDisk(t.Context()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("read: %v", err)
	}
	if err := b.client.FillDisk(t.Context(), bytes.NewReader(make([]byte, 1024))); !fault.Is(err, fault.Unsupported) {
		t.Errorf("fill: %v", err)
	}
}
