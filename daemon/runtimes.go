// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/native"
)

// Runtimes are the kinds of runtime that a server has, each its section of the configuration.
// This is the only place that names them: a new one is a field and an entry of list.
type Runtimes struct {
	Native native.Kind `yaml:"native"`
	Docker docker.Kind `yaml:"docker"`
	// Others are further kinds: of a program that embeds the server, or of a test.
	Others []runtime.Kind `yaml:"-"`
}

// list returns all kinds. The first is the default runtime of sandboxes.
func (r *Runtimes) list() []runtime.Kind {
	return append([]runtime.Kind{&r.Native, &r.Docker}, r.Others...)
}

// wanted returns those of the list that the configuration asks for.
func (r *Runtimes) wanted() (out []runtime.Kind) {
	for _, k := range r.list() {
		if o, ok := k.(runtime.Optional); !ok || o.Wanted() {
			out = append(out, k)
		}
	}
	return out
}

// host returns the kind whose disks belong to the data directory: the identity knows one store of
// disks. A second kind with a store of its own needs fields there.
func (r *Runtimes) host() runtime.HostKind {
	for _, k := range r.list() {
		if h, ok := k.(runtime.HostKind); ok {
			return h
		}
	}
	return nil
}

// place returns where a kind keeps its files.
func place(k runtime.Kind, data, namespace string) runtime.Place {
	return runtime.Place{Dir: filepath.Join(data, k.Name()), Namespace: namespace}
}

// open opens the drivers of all kinds, by name, and adds their closing to down.
func (r *Runtimes) open(ctx context.Context, data string, self identity, opts Options, down *cleanup.Stack, log *slog.Logger) (map[string]runtime.Driver, error) {
	program := opts.Agent
	if program == nil {
		var err error
		if program, err = embedded.Program(); err != nil {
			return nil, err
		}
	}
	drivers := make(map[string]runtime.Driver)
	for _, k := range r.wanted() {
		d, err := k.Open(ctx, runtime.OpenOptions{
			Place: place(k, data, self.Namespace), Installation: self.ofStore(opts.Adopt), Agent: program, Logger: log,
		})
		if err != nil {
			return nil, err
		}
		down.Add(func() { report(log, "close the "+k.Name()+" runtime", d.Close()) })
		drivers[k.Name()] = d
	}
	return drivers, nil
}

// hostDrivers returns the drivers whose disks have records.
type hostDrivers []runtime.HostDriver

func hostDriversOf(drivers map[string]runtime.Driver) (out hostDrivers) {
	for _, d := range drivers {
		if h, ok := d.(runtime.HostDriver); ok {
			out = append(out, h)
		}
	}
	return out
}

// identified reports whether all stores of disks have the installation's id.
func (h hostDrivers) identified() bool {
	for _, d := range h {
		if !d.Identified() {
			return false
		}
	}
	return len(h) > 0
}

// Persist writes everything made so far to the disk.
func (h hostDrivers) Persist() (err error) {
	for _, d := range h {
		err = cmp.Or(err, d.Persist())
	}
	return err
}

// MarkRecorded reports to the drivers that what was made before at is recorded.
func (h hostDrivers) MarkRecorded(at time.Time) (err error) {
	for _, d := range h {
		err = cmp.Or(err, d.MarkRecorded(at))
	}
	return err
}
