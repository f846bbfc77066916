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
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// machine is one instance, shared by all values that drivers gave out for it.
//
// In its directory: disk, which stands for the sandbox's "/"; log, the agent's
// own; exit, which says why it is down and is missing while it is up, so
// that one whose process was killed is found without; and while volumes are
// mounted, mounts, which lists where, and covered, with what is under them.
type machine struct {
	host *Host
	id   sandbox.ID
	dir  string

	verb sync.Mutex // one start, stop, pause, snapshot or the like at a time; taken before mu

	mu       sync.Mutex
	up       *running
	limits   sandbox.Limits // that it was told last
	hostname string         // likewise
	mounts   []mounted      // under verb
	exit     runtime.Exit
	down     chan struct{} // closed while it is down
	gone     bool
}

// running is the agent of a machine that is up.
type running struct {
	gate   *gate
	pipe   *pipe
	server *server.Server
	log    *os.File
	cancel context.CancelFunc
	served chan struct{}
	turn   int64         // of the last call to suspend the agent or let it go on; under machine.verb
	paused *herd         // under machine.mu; nil while it runs
	silent bool          // see Host.Silence; under machine.verb
	cpu    time.Duration // the most that its processes were seen to have used; under machine.verb
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

// fill makes what is in the directory of a new instance. Its disk is a copy of the
// snapshot from, or where that is zero as the image has it.
func (m *machine) fill(from sandbox.ID) error {
	if err := os.Mkdir(filepath.Join(m.dir, logDir), 0o755); err != nil {
		return err
	}
	return m.host.newDisk(m.disk(), from)
}

// disk is where what stands for the sandbox's "/" is on the host.
func (m *machine) disk() string { return filepath.Join(m.dir, diskDir) }

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
	return m.unmount()
}

func (m *machine) start(spec runtime.Spec) error {
	m.verb.Lock()
	defer m.verb.Unlock()
	return m.startLocked(spec)
}

func (m *machine) startLocked(spec runtime.Spec) error {
	switch _, err := m.running(); {
	case err == nil:
		return fault.New(fault.State, "the instance %s is up already", m.id)
	case !fault.Is(err, fault.State):
		return err
	}
	if err := m.mount(spec.Mounts); err != nil {
		return err
	}
	log, err := os.Open(filepath.Join(m.dir, logDir))
	if err == nil {
		if err = os.Remove(filepath.Join(m.dir, exitFile)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			_ = log.Close()
		}
	}
	if err != nil {
		_ = m.unmount()
		return err
	}
	g := newGate()
	disk := m.disk()
	srv := server.New(server.Options{
		User: gatedView{
			View: view.Plain(view.Identity{Name: "sandbox", UID: os.Getuid(), GID: os.Getgid(), Home: filepath.Join(disk, "home/sandbox")}),
			gate: g,
		},
		Log:         log,
		Dir:         disk,
		Logger:      m.host.log,
		MaxLogBytes: spec.Limits.LogBytes(),
	})
	// The agent's life is the machine's, not that of the call that starts it.
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{gate: g, pipe: newPipe(g), server: srv, log: log, cancel: cancel, served: make(chan struct{})}
	go func() {
		defer close(r.served)
		_ = srv.Serve(ctx, r.pipe)
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.up, m.down, m.limits, m.hostname = r, make(chan struct{}), spec.Limits, spec.Hostname
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
	if r.paused != nil || r.silent {
		r.silent = false
		r.gate.reopen() // its processes are stopped, and killed so
	}
	<-r.served
	err := errors.Join(r.server.Close(), m.unmount())
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
	return m.removeLocked()
}

func (m *machine) removeLocked() error {
	if err := m.stopLocked(stoppedExit()); err != nil {
		return err
	}
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone {
		return nil
	}
	if err := removeAll(m.dir); err != nil {
		return err
	}
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.host.forget(m)
	return nil
}

// lastFiles bounds how long the files of what was killed are waited for.
const lastFiles = 5 * time.Second

// removeAll removes a directory in which somebody who was killed may still be making a file:
// without a group nothing tells when the last one is gone.
func removeAll(dir string) error {
	for began := time.Now(); ; {
		err := os.RemoveAll(dir)
		if !errors.Is(err, unix.ENOTEMPTY) || time.Since(began) > lastFiles {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
