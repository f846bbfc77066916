// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/sandbox"
)

func TestMain(m *testing.M) {
	if os.Getenv(initEnv) != "" {
		os.Exit(runInit())
	}
	goleak.VerifyTestMain(m)
}

// plain is an agent within the test's own process.
type plain struct {
	dir    string // stands for "/"
	log    string
	socket string
	srv    *server.Server
	client *agent.Client
}

func newPlain(t *testing.T, adapt func(*server.Options)) *plain {
	t.Helper()
	p := &plain{dir: t.TempDir(), log: t.TempDir()}
	p.serve(t, adapt)
	return p
}

// serve begins to serve p's directories; a second time it is an agent that was
// started anew.
func (p *plain) serve(t *testing.T, adapt func(*server.Options)) (stop func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(p.dir, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	logDir, err := os.Open(p.log)
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{
		User: view.Plain(view.Identity{Name: "sandbox", UID: os.Geteuid(), GID: os.Getegid(), Home: "/workspace"}),
		Log:  logDir, Dir: p.dir, Version: "test",
	}
	if adapt != nil {
		adapt(&o)
	}
	p.srv = server.New(o)
	socket, err := os.MkdirTemp("", "agent") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	p.socket = filepath.Join(socket, "s")
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	srv := p.srv
	go func() { served <- srv.Serve(ctx, l) }()
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := srv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = logDir.Close()
		_ = os.RemoveAll(socket)
	}
	t.Cleanup(stop)
	path := p.socket
	p.client = agent.NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
	return stop
}

func TestOnlyProcessOneDoesItsDuties(t *testing.T) {
	t.Parallel()
	if err := server.BecomeInit(); err == nil {
		t.Fatal("a process that is not 1 lets the kernel reap what it waits for")
	}
	cmd := exec.Command("/bin/sh", "-c", "exit 3")
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Error("and after that:", cmd.ProcessState)
	}
}

// A connection whose input the program does not read is served until it ends, and no longer.
func TestServeEndsWhileAProgramDoesNotRead(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	q, err := p.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo up; sleep 600", StreamStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the pipe takes one of them
		if _, err := q.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	// The cleanup ends Serve, and only then the program.
}

func TestPlainAgent(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, func(t *testing.T) *agent.Client { return newPlain(t, nil).client }, agenttest.Options{})
}
