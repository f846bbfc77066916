// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"sandpit.dev/agent/server"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// machine is one instance, shared by all values that drivers gave out for it.
//
// In its directory: disk, which stands for the sandbox's "/"; log, the agent's
// own; and exit, which says why it is down and is missing while it is up, so
// that one whose process was killed is found without.
type machine struct {
	host *Host
	id   sandbox.ID
	dir  string

	verb sync.Mutex // one start, stop or remove at a time; taken before mu

	mu   sync.Mutex
	up   *running
	exit runtime.Exit
	down chan struct{} // closed while it is down
	gone bool
}

// running is the agent of a machine that is up.
type running struct {
	pipe   *pipe
	server *server.Server
	log    *os.File
	cancel context.CancelFunc
	served chan struct{}
}

const (
	diskDir  = "disk"
	logDir   = "log"
	exitFile = "exit"
)

func newMachine(h *Host, id sandbox.ID) *machine {
	m := &machine{host: h, id: id, dir: filepath.Join(h.dir, string(id)), down: make(chan struct{})}
	close(m.down)
	m.exit = runtime.Exit{Cause: sandbox.CauseHost, Detail: "it was never up"}
	return m
}

// make makes the directories of a new instance: all or nothing.
func (m *machine) make() error {
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.New(fault.Exists, "there is an instance %s already", m.id)
		}
		return err
	}
	for _, d := range []string{logDir, diskDir, "disk/workspace", "disk/artifacts", "disk/tmp", "disk/home/sandbox"} {
		if err := os.MkdirAll(filepath.Join(m.dir, d), 0o755); err != nil {
			_ = os.RemoveAll(m.dir)
			return err
		}
	}
	return nil
}

// load reads how an instance of an earlier process was left.
func (m *machine) load() error {
	if _, err := os.Lstat(m.dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return noInstance(m.id)
		}
		return err
	}
	data, err := os.ReadFile(filepath.Join(m.dir, exitFile))
	if err == nil {
		err = json.Unmarshal(data, &m.exit)
	}
	if err != nil {
		m.exit = runtime.Exit{Cause: sandbox.CauseHost, Detail: "the process that it lived in ended"}
	}
	return nil
}

func (m *machine) start() error {
	m.verb.Lock()
	defer m.verb.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.gone:
		return noInstance(m.id)
	case m.up != nil:
		return fault.New(fault.State, "the instance %s is up already", m.id)
	}
	log, err := os.Open(filepath.Join(m.dir, logDir))
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(m.dir, exitFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = log.Close()
		return err
	}
	disk := filepath.Join(m.dir, diskDir)
	srv := server.New(server.Options{
		User:   server.Plain(server.Identity{Name: "sandbox", UID: os.Getuid(), GID: os.Getgid(), Home: filepath.Join(disk, "home/sandbox")}),
		Log:    log,
		Dir:    disk,
		Logger: m.host.log,
	})
	// The agent's life is the machine's, not that of the call that starts it.
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{pipe: newPipe(), server: srv, log: log, cancel: cancel, served: make(chan struct{})}
	go func() {
		defer close(r.served)
		_ = srv.Serve(ctx, r.pipe)
	}()
	m.up, m.down = r, make(chan struct{})
	return nil
}

func (m *machine) dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	r := m.up
	m.mu.Unlock()
	if r == nil {
		return nil, errDown(m.id)
	}
	conn, err := r.pipe.dial(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil, errDown(m.id)
	}
	return conn, err
}

// stop takes the machine down for exit's reason; one that is down stays as it is.
func (m *machine) stop(exit runtime.Exit) error {
	m.verb.Lock()
	defer m.verb.Unlock()
	return m.stopLocked(exit)
}

func (m *machine) stopLocked(exit runtime.Exit) error {
	m.mu.Lock()
	r := m.up
	m.mu.Unlock()
	if r == nil {
		return nil
	}
	r.cancel()
	<-r.served
	err := r.server.Close()
	_ = r.log.Close()
	if data, jsonErr := json.Marshal(exit); jsonErr == nil {
		// Without it the instance is found down with the cause host; no more is lost.
		_ = os.WriteFile(filepath.Join(m.dir, exitFile), data, 0o644)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up, m.exit = nil, exit
	close(m.down)
	return err
}

func (m *machine) remove() error {
	m.verb.Lock()
	defer m.verb.Unlock()
	if err := m.stopLocked(stoppedExit()); err != nil {
		return err
	}
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone {
		return nil
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return err
	}
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.host.forget(m)
	return nil
}
