// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package overview tells in one answer what a project, or the whole server, is at: sandboxes by state, what is in use
// against what there is, and what happened in the last hour. It reads figures that are kept, and nothing of a sandbox.
package overview

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/recent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Files is how many files are open, of how many that may be. A figure that is not known is negative.
type Files struct {
	Server, ServerLimit int64 // of this process
	Host, HostLimit     int64 // of the whole host
}

// Store is the place where the sandboxes of a runtime have their disks.
type Store struct {
	Runtime string
	runtime.Disk
}

// Overview is what a project, or the server, is at.
type Overview struct {
	Project string // empty: all
	At      time.Time
	Started time.Time // of the server
	States  map[sandbox.State]int
	// Use is what sandboxes use together that are up, at most a minute old; nil: it was not read yet.
	Use     *meter.Sum
	Hour    recent.Report
	Counted bool // whether Hour is; else there are too many projects to count this one by itself

	Operator *Operator // for who runs the server alone
}

// Operator is what concerns the host and the server.
type Operator struct {
	Host    *meter.Host // nil: it cannot be read
	Files   *Files      // nil: likewise
	Stores  []Store     // by the runtimes' names
	Records error       // why no new work is recorded; nil: it is
}

// Options of a [Service].
type Options struct {
	Files   func() (Files, error)     // nil: nobody counts them
	Now     func() time.Time          // nil: time.Now
	Started time.Time                 // of the server
	Drivers map[string]runtime.Driver // whose disks are told of
	Logger  *slog.Logger              // nil: none
}

// Service gives overviews. It is safe for concurrent use.
type Service struct {
	store  store.Store
	stats  *meter.Service
	recent *recent.Log
	o      Options
}

// New returns a service of records, of what is in use, and of what is counted.
func New(s store.Store, stats *meter.Service, log *recent.Log, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{store: s, stats: stats, recent: log, o: o}
}

// Overview returns that of the caller's project, or for who runs the server of all.
func (s *Service) Overview(ctx context.Context, c access.Caller, allProjects bool) (Overview, error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return Overview{}, err
	}
	out := Overview{Project: c.Project, At: s.o.Now(), Started: s.o.Started}
	runs := c.Require(access.ServerAdmin)
	if allProjects {
		if runs != nil {
			return Overview{}, runs
		}
		out.Project = ""
	}
	if err := s.store.View(ctx, func(tx store.Tx) (err error) {
		out.States, err = tx.Sandboxes().Count(store.SandboxQuery{Project: out.Project})
		return err
	}); err != nil {
		return Overview{}, err
	}
	if sum, ok := s.stats.Sum(out.Project); ok {
		out.Use = &sum
	}
	out.Hour, out.Counted = s.recent.Report(out.Project)
	if runs == nil {
		out.Operator = s.operator()
	}
	return out, nil
}

func (s *Service) operator() *Operator {
	o := &Operator{Host: s.stats.Host(), Records: s.store.Room()}
	if s.o.Files != nil {
		f, err := s.o.Files()
		if err != nil {
			s.o.Logger.Debug("how many files are open cannot be read", "error", err)
		} else {
			o.Files = &f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.o.Drivers)) {
		if d, ok := s.o.Drivers[name].(runtime.DiskReporter); ok {
			o.Stores = append(o.Stores, Store{name, d.Disk()})
		}
	}
	return o
}
