// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inuse

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
)

func TestThisHostIsRead(t *testing.T) {
	h, err := Read("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if h.MemoryMB < 1 || h.AvailableMB < 1 || h.AvailableMB > h.MemoryMB || h.Load < 0 || h.Cores < 1 {
		t.Errorf("got %+v", h)
	}
}

func write(t *testing.T, dir string, availableMB int, load string) {
	t.Helper()
	for name, text := range map[string]string{
		"meminfo": fmt.Sprintf("MemTotal:       1024000 kB\nMemFree:        1 kB\nMemAvailable:   %d kB\n", availableMB<<10),
		"loadavg": load + " 1.00 1.00 3/400 12345\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewWorkIsRefusedWhileTooMuchIsInUse(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1e9, 0)
	g := New(Bounds{MemoryPercent: 90, LoadPerCore: 4}, Options{Proc: dir, Now: func() time.Time { return now }})
	high := fmt.Sprint(4*runtime.NumCPU(), ".01")
	for _, c := range []struct {
		availableMB int
		load        string
		names       []string // nil: it is admitted
	}{
		{101, "0.00", nil},
		{99, "0.00", []string{"90.1% of its memory", "90%", "99 are left", "overcommit.in_use.memory_percent"}},
		{500, high, []string{high + " tasks", "4 for each", "overcommit.in_use.load_per_core"}},
		{500, fmt.Sprint(4 * runtime.NumCPU()), nil},
	} {
		write(t, dir, c.availableMB, c.load)
		now = now.Add(fresh)
		err := g.Admit()
		if c.names == nil {
			if err != nil {
				t.Errorf("%+v: got %v", c, err)
			}
			continue
		}
		e := fault.As(err)
		if !fault.Is(err, fault.Exhausted) || e.Retry == 0 {
			t.Errorf("%+v: got %v, want Exhausted with a time to try again", c, err)
			continue
		}
		for _, n := range c.names {
			if !strings.Contains(e.Message+" "+e.Remedy, n) {
				t.Errorf("%+v: %q, %q does not name %q", c, e.Message, e.Remedy, n)
			}
		}
	}
	write(t, dir, 1, "0.00")
	if err := g.Admit(); err != nil {
		t.Errorf("it was read again within %v: %v", fresh, err)
	}
	if err := New(Bounds{}, Options{Proc: dir}).Admit(); err != nil {
		t.Errorf("without bounds: %v", err)
	}
	if err := New(Bounds{MemoryPercent: 1}, Options{Proc: t.TempDir()}).Admit(); err != nil {
		t.Errorf("where nothing can be read: %v", err)
	}
}

func TestBoundsAreChecked(t *testing.T) {
	for field, b := range map[string]Bounds{"x.memory_percent": {MemoryPercent: 101}, "x.load_per_core": {LoadPerCore: -1}} {
		err := b.Check("x")
		if e := fault.As(err); !fault.Is(err, fault.Invalid) || e.Fields[0].Name != field {
			t.Errorf("%+v: got %v", b, err)
		}
	}
	if err := (Bounds{MemoryPercent: 95, LoadPerCore: 100}).Check("x"); err != nil {
		t.Error(err)
	}
}
