// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package project has the record of a project, and what a project may have and has. It is plain data
// with its rules: where records are kept (store), who holds projects to their quotas (store/quota) and
// who may change them (projects) it does not know.
package project

import (
	"math"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Project is the record of a project. Sandboxes, tokens and all that there is belong to one, by its name.
type Project struct {
	Name      string
	CreatedAt time.Time
	CreatedBy string  // the token's name; empty: it is older than records of projects, or the server made it
	Quotas    Amounts // the most that it may have; zero: no bound
}

// Resource is something of which a project may have so much.
type Resource int

const (
	Sandboxes Resource = iota // in all, in whatever state
	Running                   // of them, see [Runs]
	CPU                       // cores that running ones may use
	Memory                    // MiB, likewise
	Processes                 // and threads, likewise
	Disk                      // MiB that sandboxes whose disk is here, and volumes, may hold
	Snapshots                 // that callers took or imported; the engine's own checkpoints are none
	Volumes
	Commands // that callers began within a day, as UTC has it
	// What running ones are promised, times how long they run, within a month as UTC has it:
	CPUSeconds    // of cores
	MemorySeconds // of GiB

	resources
)

// Resources lists all of them.
func Resources() []Resource {
	all := make([]Resource, resources)
	for i := range all {
		all[i] = Resource(i)
	}
	return all
}

// String is the name, as quotas and answers have it.
func (r Resource) String() string {
	switch r {
	case Sandboxes:
		return "sandboxes"
	case Running:
		return "running"
	case CPU:
		return "cpu_cores"
	case Memory:
		return "memory_mb"
	case Processes:
		return "processes"
	case Disk:
		return "disk_mb"
	case Snapshots:
		return "snapshots"
	case Volumes:
		return "volumes"
	case Commands:
		return "commands_per_day"
	case CPUSeconds:
		return "cpu_seconds_per_month"
	case MemorySeconds:
		return "memory_gib_seconds_per_month"
	}
	return "unknown"
}

// Named returns the resource of a name.
func Named(name string) (Resource, bool) {
	for _, r := range Resources() {
		if r.String() == name {
			return r, true
		}
	}
	return 0, false
}

// names lists them for a message.
func names() string {
	all := make([]string, resources)
	for i, r := range Resources() {
		all[i] = r.String()
	}
	return strings.Join(all, ", ")
}

// Amounts are so much of each resource. As quotas, zero is no bound.
type Amounts [resources]float64

// Parse returns amounts that are given by name. Another name, or a value that is not an amount, is Invalid, and
// the field is named below field.
func Parse(field string, given map[string]float64) (Amounts, error) {
	var a Amounts
	var bad []fault.Field
	for name, v := range given {
		r, ok := Named(name)
		if !ok {
			return a, fault.InvalidField(field, "there is no quota %q; there are %s", sandbox.Clip(name, 40), names())
		}
		a[r] = v
	}
	for _, r := range Resources() {
		if why := check(r, a[r]); why != "" {
			bad = append(bad, fault.Field{Name: field + "." + r.String(), Message: why})
		}
	}
	if len(bad) > 0 {
		return a, fault.InvalidFields(bad...)
	}
	return a, nil
}

// ByName returns the amounts that are not zero by name.
func (a Amounts) ByName() map[string]float64 {
	out := make(map[string]float64)
	for _, r := range Resources() {
		if a[r] != 0 {
			out[r.String()] = a[r]
		}
	}
	return out
}

// maxAmount is what no amount exceeds: all are whole numbers that every client reads exactly.
const maxAmount = 1e12

func check(r Resource, v float64) string {
	switch {
	case math.IsNaN(v) || v < 0 || v > maxAmount:
		return "is not a number from 0, which is no bound, to 1e12"
	case r != CPU && v != math.Trunc(v):
		return "is not a whole number"
	}
	return ""
}

// Over reports whether use is more than a bound. Sums of cores are not exact, and need not be.
func Over(use, bound float64) bool { return use > bound*(1+1e-9) }

// Runs reports whether a sandbox counts as running: it runs, or is on the way to that or from that. A paused one does not.
func Runs(s *sandbox.Sandbox) bool {
	switch s.State {
	case sandbox.Creating, sandbox.Running, sandbox.Pausing, sandbox.Resuming, sandbox.Stopping, sandbox.Starting:
		return true
	case sandbox.Restoring: // one that was stopped is stopped afterwards
		return s.StopCause == sandbox.CauseRestore
	}
	return false
}

// Of is what a sandbox's record takes of each resource.
func Of(s *sandbox.Sandbox) Amounts {
	var a Amounts
	a[Sandboxes] = 1
	if Runs(s) {
		a[Running], a[CPU], a[Memory], a[Processes] = 1, s.Limits.CPU, float64(s.Limits.MemoryMB), float64(s.Limits.Pids)
	}
	if s.State != sandbox.Archived {
		a[Disk] = float64(s.Limits.DiskMB)
	}
	return a
}

// Refuse returns the refusal of what would take more than a quota: use is what there is without it, more what it
// takes. Where waiting may help it says when to try again.
func (p *Project) Refuse(r Resource, use, more float64, now time.Time) error {
	if r == CPUSeconds || r == MemorySeconds {
		return p.refuseBudget(r, use, now)
	}
	e := fault.New(fault.Exhausted, "the project %s has the quota %s: %v, of which %v are in use, and this needs %v more", p.Name, r, p.Quotas[r], round(use), round(more))
	way := ""
	switch r {
	case Running, CPU, Memory, Processes:
		way, e.Retry = "stop or pause sandboxes, or try again when some have stopped by themselves", 10*time.Second
	case Commands:
		way, e.Retry = "wait until the day ends, at midnight UTC", now.UTC().Truncate(24*time.Hour).Add(24*time.Hour).Sub(now)
	case Disk:
		way = "delete or archive sandboxes, delete volumes, or ask for less"
	default:
		way = "delete " + r.String() + " that are not needed any more"
	}
	return e.WithRemedy("%s; or have the server's administrator raise the quota (sandpit project set %s %s=N). sandpit limits says what is left", way, p.Name, r)
}

// refuseBudget is Refuse for what runs: it takes of a budget as long as it does.
func (p *Project) refuseBudget(r Resource, used float64, now time.Time) error {
	_, end := Month(now)
	e := fault.New(fault.Exhausted, "the project %s has the quota %s: %v, of which %v are used, and what is asked for would run", p.Name, r, p.Quotas[r], round(used))
	e.Retry = end.Sub(now)
	return e.WithRemedy("wait until the month ends, at %s, and stop or pause what runs meanwhile; or have the server's administrator raise the quota (sandpit project set %s %s=N). sandpit limits says what is left", end.Format(time.RFC3339), p.Name, r)
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// Month is the month that a time is in, as UTC has it.
func Month(t time.Time) (begin, end time.Time) {
	y, m, _ := t.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}

// Day is the number of the day, since 1970, that a time is in.
func Day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
