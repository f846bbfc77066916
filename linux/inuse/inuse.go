// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package inuse says how much of a host is in use, and refuses new work while it is too much.
package inuse

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandpit.dev/fault"
)

// Host is what is in use of a host.
type Host struct {
	MemoryMB, AvailableMB int     // all that it has, and what new work may have without swapping
	Load                  float64 // tasks that run or wait, for a processor or a disk, on average of the last minute
	Cores                 int
}

// Read reads it from a proc file system.
func Read(proc string) (h Host, err error) {
	h.Cores = runtime.NumCPU()
	b, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return h, err
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		to := map[string]*int{"MemTotal": &h.MemoryMB, "MemAvailable": &h.AvailableMB}[name]
		if to == nil {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		if err != nil {
			return h, fmt.Errorf("read %s of meminfo: %w", name, err)
		}
		*to = kib >> 10
	}
	if h.MemoryMB == 0 {
		return h, fmt.Errorf("meminfo does not say how much memory there is")
	}
	b, err = os.ReadFile(filepath.Join(proc, "loadavg"))
	if err != nil {
		return h, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	if h.Load, err = strconv.ParseFloat(first, 64); err != nil {
		return h, fmt.Errorf("read loadavg: %w", err)
	}
	return h, nil
}

// Bounds are how much may be in use before new work is refused. Zero: no bound.
type Bounds struct {
	MemoryPercent float64 // of the host's
	LoadPerCore   float64 // of Host.Load
}

// Check checks bounds, whose names begin with field.
func (b Bounds) Check(field string) error {
	if math.IsNaN(b.MemoryPercent) || b.MemoryPercent < 0 || b.MemoryPercent > 100 {
		return fault.InvalidField(field+".memory_percent", "%v is outside 0, which is no bound, to 100", b.MemoryPercent)
	}
	if math.IsNaN(b.LoadPerCore) || b.LoadPerCore < 0 || b.LoadPerCore > 1e6 {
		return fault.InvalidField(field+".load_per_core", "%v is outside 0, which is no bound, to 1e6", b.LoadPerCore)
	}
	return nil
}

// fresh is for how long a reading is good: however many ask, the host is looked at once in that time.
const fresh = time.Second

// Gate refuses new work while more than its bounds is in use. It is safe for concurrent use.
type Gate struct {
	proc   string
	bounds Bounds
	now    func() time.Time
	log    *slog.Logger

	mu   sync.Mutex
	last Host
	err  error // of the last reading
	at   time.Time
}

// Options of a [Gate].
type Options struct {
	Proc   string           // "": /proc
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: none
}

// New returns a gate.
func New(b Bounds, o Options) *Gate {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gate{proc: o.Proc, bounds: b, now: o.Now, log: o.Logger}
}

// Admit returns Exhausted while too much is in use. Where that cannot be read it refuses nothing.
func (g *Gate) Admit() error {
	if g.bounds == (Bounds{}) {
		return nil
	}
	h, err := g.read()
	if err != nil {
		return nil
	}
	why := ""
	key := ""
	used := 100 - 100*float64(h.AvailableMB)/float64(h.MemoryMB)
	switch {
	case g.bounds.MemoryPercent > 0 && used > g.bounds.MemoryPercent:
		key, why = "memory_percent", fmt.Sprintf("%.1f%% of its memory is in use, more than %v%%: of %d MiB %d are left", used, g.bounds.MemoryPercent, h.MemoryMB, h.AvailableMB)
	case g.bounds.LoadPerCore > 0 && h.Load > g.bounds.LoadPerCore*float64(h.Cores):
		key, why = "load_per_core", fmt.Sprintf("%v tasks want its %d processors, more than %v for each", h.Load, h.Cores, g.bounds.LoadPerCore)
	default:
		return nil
	}
	e := fault.New(fault.Exhausted, "this server's host can carry nothing more that runs now: %s", why)
	e.Retry = 10 * time.Second
	return e.WithRemedy("stop or pause sandboxes that are not needed, or try again later; its operator sets the bound by overcommit.in_use.%s", key)
}

// read returns a reading that is fresh.
func (g *Gate) read() (Host, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if age := now.Sub(g.at); age >= 0 && age < fresh {
		return g.last, g.err
	}
	before := g.err
	g.last, g.err = Read(g.proc)
	g.at = now
	if g.err != nil && before == nil {
		g.log.Warn("what is in use of the host cannot be read; new work is not refused for it", "error", g.err)
	}
	return g.last, g.err
}
