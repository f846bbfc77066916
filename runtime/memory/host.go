// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
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

	mu       sync.Mutex
	machines map[sandbox.ID]*machine
	closed   bool
}

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
	return &Host{dir: dir, log: o.Logger, machines: make(map[sandbox.ID]*machine)}, nil
}

// Driver gives a driver over the host, as each run of a server makes one. Any
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

// find gives the machine of an id, read from its directory if need be.
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
