// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Options may be zero.
type Options struct {
	Logger *slog.Logger // of the agents; nil: silent
}

// Host is the machine that instances live on. It is safe for concurrent use.
type Host struct {
	dir string
	log *slog.Logger

	snapshots sync.RWMutex // for reading by who copies of one

	mu       sync.Mutex
	machines map[sandbox.ID]*machine
	mounts   map[sandbox.ID]int // how often each volume is mounted
	closed   bool
}

// Beside the directories of the instances.
const (
	snapshotsDir = ".snapshots"
	volumesDir   = ".volumes"
	tempPrefix   = "tmp-" // of what is being made or deleted there
)

// Open makes the directory dir if it is missing; it holds a directory for each
// instance. A host that was closed, or whose process was killed, is found again
// by opening its directory.
func Open(dir string, o Options) (*Host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, of := range []string{snapshotsDir, volumesDir} {
		halves, err := filepath.Glob(filepath.Join(dir, of, tempPrefix+"*"))
		if err != nil {
			return nil, err
		}
		for _, half := range halves {
			if err := os.RemoveAll(half); err != nil {
				return nil, err
			}
		}
	}
	return &Host{dir: dir, log: o.Logger, machines: make(map[sandbox.ID]*machine), mounts: make(map[sandbox.ID]int)}, nil
}

// Driver returns a driver over the host, as each run of a server makes one. Any
// number may be in use.
func (h *Host) Driver() *Driver { return &Driver{host: h} }

// Kill takes an instance down as if the host had: its processes are killed and
// its Wait says exit. One that is down already stays as it is.
func (h *Host) Kill(id sandbox.ID, exit runtime.Exit) error {
	h.mu.Lock()
	m := h.machines[id]
	h.mu.Unlock()
	if m == nil {
		return fault.New(fault.NotFound, "there is no instance %s", id)
	}
	return m.stop(exit)
}

// Silence has the agent of an instance that is up take and give nothing, as one does whose
// process somebody stopped, until wake is called. Its commands go on. The instance must not
// be paused meanwhile.
func (h *Host) Silence(id sandbox.ID) (wake func(), err error) {
	m, err := h.find(id)
	if err != nil {
		return nil, err
	}
	m.verb.Lock()
	defer m.verb.Unlock()
	r, err := m.running()
	if err != nil {
		return nil, err
	}
	r.gate.shut()
	r.silent = true
	return func() {
		m.verb.Lock()
		defer m.verb.Unlock()
		if r.silent {
			r.silent = false
			r.gate.reopen()
		}
	}, nil
}

// Limits are those that an instance was created, started or resized with last.
func (h *Host) Limits(id sandbox.ID) (sandbox.Limits, error) {
	m, err := h.find(id)
	if err != nil {
		return sandbox.Limits{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limits, nil
}

// Close switches the host off: all instances go down, with the cause host, and
// their disks stay. Nothing of the host runs when it returns.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	machines := make([]*machine, 0, len(h.machines))
	for _, m := range h.machines {
		machines = append(machines, m)
	}
	h.mu.Unlock()
	var first error
	for _, m := range machines {
		if err := m.stop(runtime.Exit{Cause: sandbox.CauseHost, Detail: "the host was switched off"}); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// find returns the machine of an id, read from its directory if need be.
func (h *Host) find(id sandbox.ID) (*machine, error) {
	if !sandbox.ValidID(string(id)) {
		return nil, noInstance(id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.machines[id]; m != nil {
		return m, nil
	}
	m := newMachine(h, id)
	if err := m.load(); err != nil {
		return nil, err
	}
	h.machines[id] = m
	return m, nil
}

// register takes an id for a new machine, whose verb is the caller's.
func (h *Host) register(id sandbox.ID) (*machine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fault.New(fault.Unavailable, "the host is switched off")
	}
	m := newMachine(h, id)
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fault.New(fault.Exists, "there is an instance %s already", id)
		}
		return nil, err
	}
	m.verb.Lock()
	h.machines[id] = m
	return m, nil
}

// ids lists the directories below one of the host's own that are named as an id.
func (h *Host) ids(of string) ([]sandbox.ID, error) {
	entries, err := os.ReadDir(filepath.Join(h.dir, of))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []sandbox.ID
	for _, e := range entries {
		if sandbox.ValidID(e.Name()) {
			ids = append(ids, sandbox.ID(e.Name()))
		}
	}
	return ids, nil
}

func (h *Host) forget(m *machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.machines[m.id] == m {
		delete(h.machines, m.id)
	}
}

func noInstance(id sandbox.ID) error {
	return fault.New(fault.NotFound, "there is no instance %q", sandbox.Clip(string(id), 40))
}
