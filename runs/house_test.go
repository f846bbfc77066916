// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/store/sqlstore"
)

// What the process that is to die reads from its environment.
const (
	crashDir   = "SANDPIT_TEST_CRASH_DIR"
	crashPoint = "SANDPIT_TEST_CRASH_POINT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		err := crash(dir, os.Getenv(crashPoint))
		fmt.Fprintln(os.Stderr, "the process should have been killed:", err)
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// house is a runner over an engine with real neighbours.
type house struct {
	t      testing.TB
	server *enginetest.Server
	store  *sqlstore.Store
	engine *engine.Engine
	runner *runs.Runner
}

// open makes a house in dir, with what an earlier one left there. It is ready. The engine has
// the clock of the runs.
func open(t testing.TB, dir string, change ...func(*runs.Options)) *house {
	t.Helper()
	var o runs.Options
	for _, f := range change {
		f(&o)
	}
	s := enginetest.StartRuns(t, dir, o, func(e *engine.Options) { e.Now = o.Now })
	return &house{t: t, server: s, store: s.Store, engine: s.Engine, runner: s.Runs}
}

// restart ends the engine and begins another over the same host and store.
func (h *house) restart() {
	h.t.Helper()
	h.server.Restart()
	h.engine, h.runner = h.server.Engine, h.server.Runs
}

// within is the house for a part of a test.
func (h *house) within(t *testing.T) *house {
	c := *h
	c.t = t
	return &c
}

func (h *house) create(r engine.CreateRequest) {
	h.t.Helper()
	if _, created, err := h.engine.Create(h.t.Context(), alice, r); err != nil || !created {
		h.t.Fatalf("Create: created %v, %v", created, err)
	}
}

func (h *house) exec(ref, shell string) engine.ExecResult {
	h.t.Helper()
	res, err := h.engine.Exec(h.t.Context(), alice, ref, engine.ExecRequest{Shell: shell}, nil)
	if err != nil {
		h.t.Fatalf("Exec %q: %v", shell, err)
	}
	return res
}

// await waits for commits until ok.
func (h *house) await(what string, ok func() bool) {
	h.t.Helper()
	h.server.Await(h.t, what, ok)
}

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("error: got %q (%v), want %q", got, err, want)
	}
}

// crash is the program of a process that is to die: a server with a store and a host in dir,
// that is killed when a run comes to the point.
func crash(dir, point string) error {
	ctx := context.Background()
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	if err != nil {
		return err
	}
	st, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		return err
	}
	e, err := engine.New(enginetest.Options(st, host.Driver()))
	if err != nil {
		return err
	}
	o := runs.Options{Checkpoint: func(name string) {
		if name == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	withArtifacts(dir)(&o)
	r := runs.New(e, st, o)
	go func() { _ = e.Run(ctx, r.Resume) }()
	if err := e.WaitReady(ctx); err != nil {
		return err
	}
	if _, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box"}); err != nil {
		return err
	}
	run, err := r.Start(ctx, alice, crashRun())
	if err != nil {
		return err
	}
	_, err = r.Await(ctx, alice, run.ID, time.Minute)
	return err
}

func killAt(t *testing.T, dir, point string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it is, and is not taken for killed at the point
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point)
	out, err := cmd.CombinedOutput()
	ee, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed: %v\n%s", err, out)
	}
}

var (
	alice = access.Caller{Project: "default", Actor: "alice", Via: "rest", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	mary  = access.Caller{Project: "other", Actor: "mary", Via: "mcp", Scopes: []access.Scope{access.Admin}}
)
