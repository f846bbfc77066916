// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// pair is the server's end, and the number of the agent's.
func pair(t *testing.T) (*net.UnixConn, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "server")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = unix.Close(fds[1]) })
	return c.(*net.UnixConn), fds[1]
}

func TestAMessageComesAsItWasSent(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, want := range []Message{
		{AgentCaps: 1<<63 | 5, RootCaps: 3, UserFilter: []byte("user"), RootFilter: []byte("the root's"), Reap: true, LogBytes: 16<<20 | 3, Score: 950, OpenFiles: 1 << 20},
		{AgentCaps: 7, UserFilter: []byte{}, RootFilter: []byte("r")},
		{UserFilter: []byte{}, RootFilter: []byte("r"), Account: &Account{Name: "dev", Home: "/home/dev", Workdir: "/srv/app"}},
		{UserFilter: []byte{}, RootFilter: []byte{}, Account: &Account{Name: "dev", Home: "/home/dev", Workdir: "/" + strings.Repeat("x", 1023), Again: true}},
	} {
		server, agent := pair(t)
		files := Files{View: null, Log: null, Cgroup: null, OOM: null, Pids: null, Facts: null, Sudo: null, Gauges: Gauges{null, null, null, null, null}, Joins: []*os.File{null, null}}
		if err := Send(server, want, files); err != nil {
			t.Fatal(err)
		}
		got, f, err := Receive(agent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(f.Joins) != 2 {
			t.Errorf("%d joins (-want +got):\n%s", len(f.Joins), diff)
		}
		for _, file := range f.list() {
			_ = file.Close()
		}
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	for _, text := range []string{"x", "24 bytes are one too few", "a header that tells of filters which are not there", string(make([]byte, headerLen)) + "an account of one line"} {
		if m, err := decode([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
	server, agent := pair(t)
	_ = server.Close()
	if _, _, err := Receive(agent); !errors.Is(err, ErrAbandoned) {
		t.Errorf("of a server that went away: %v", err)
	}
}
