// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package recent counts what happened in the last hour, by the minute, for the whole server and for each project: creates
// and commands with how long they took, failures by their causes, refused connections. It is in memory, begins with the
// server, and is bounded. To count is one atomic addition, and allocates once a minute at most.
package recent

import (
	"sync"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Minutes is how many a report goes back, the one that goes on included.
const Minutes = 60

// maxProjects is how many projects are counted by themselves; all count for the whole server.
const maxProjects = 100

// Kind is what is counted with its failures and times.
type Kind int

// What has failures and times.
const (
	Create Kind = iota
	Command
	kinds
)

func (k Kind) String() string { return [...]string{"create", "command"}[k] }

// ExitCause is the cause of a command that ended by itself with another exit code than zero.
const ExitCause = "exit"

// OtherCause stands for causes that are not in the table.
const OtherCause = "other"

// causes returns the names of causes, by their numbers: one list for both kinds.
func causes() []string {
	all := []string{OtherCause, ExitCause}
	for _, c := range []sandbox.Cause{
		sandbox.CauseTimeout, sandbox.CauseOOM, sandbox.CausePids, sandbox.CauseDisk, sandbox.CauseKilled, sandbox.CauseStopped, sandbox.CauseHost, sandbox.CauseIdle, sandbox.CauseTTL,
		sandbox.CauseUser, sandbox.CauseRetain, sandbox.CauseRestore, sandbox.CausePromote, sandbox.CauseRestart,
	} {
		all = append(all, string(c))
	}
	for _, c := range fault.Codes() {
		if c != fault.Timeout { // which is a cause already
			all = append(all, string(c))
		}
	}
	return all
}

// maxCauses bounds causes, so that a minute has a fixed size; a test holds it.
const maxCauses = 40

// minute is what happened in one.
type minute struct {
	at      int64 // Unix time in minutes
	refused atomic.Int64
	done    [kinds]atomic.Int64
	failed  [kinds][maxCauses]atomic.Int32
	took    [kinds]histogram
}

// series is an hour of minutes, each in the place that its time has in turn.
type series [Minutes]atomic.Pointer[minute]

// now returns the minute of a time. One that is an hour old leaves its place.
func (s *series) now(at int64) *minute {
	place := &s[at%Minutes]
	for {
		m := place.Load()
		if m != nil && m.at >= at { // another clock reading may be a minute ahead
			return m
		}
		fresh := &minute{at: at}
		if place.CompareAndSwap(m, fresh) {
			return fresh
		}
	}
}

// idle reports whether nothing happened in the hour before a time.
func (s *series) idle(at int64) bool {
	for i := range s {
		if m := s[i].Load(); m != nil && m.at > at-Minutes {
			return false
		}
	}
	return true
}

// Log counts. It is safe for concurrent use.
type Log struct {
	clock func() time.Time
	since time.Time
	names []string
	cause map[string]int
	all   series

	mu     sync.RWMutex
	of     map[string]*series
	looked int64 // the last minute in which a place was looked for in vain
}

// New returns a log that begins now. now is nil: time.Now.
func New(now func() time.Time) *Log {
	if now == nil {
		now = time.Now
	}
	l := &Log{clock: now, since: now(), names: causes(), cause: make(map[string]int), of: make(map[string]*series)}
	for n, name := range l.names {
		l.cause[name] = n
	}
	return l
}

// each calls do for the minute of the server, and for that of a project that is counted by itself.
func (l *Log) each(project string, do func(*minute)) {
	at := l.clock().Unix() / 60
	do(l.all.now(at))
	if s := l.series(project, at); s != nil {
		do(s.now(at))
	}
}

// series returns a project's, which is made where there is room; nil: there is none.
func (l *Log) series(project string, at int64) *series {
	l.mu.RLock()
	s, full := l.of[project], len(l.of) >= maxProjects && l.looked == at
	l.mu.RUnlock()
	if s != nil || full || project == "" {
		return s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.of[project]; s != nil {
		return s
	}
	if len(l.of) >= maxProjects {
		for name, s := range l.of {
			if s.idle(at) {
				delete(l.of, name)
			}
		}
		if len(l.of) >= maxProjects {
			l.looked = at
			return nil
		}
	}
	s = new(series)
	l.of[project] = s
	return s
}

// Done counts what was done, and how long it took its caller.
func (l *Log) Done(k Kind, project string, took time.Duration) {
	l.each(project, func(m *minute) { m.done[k].Add(1); m.took[k].add(took) })
}

// Ran counts how long a command took its caller, whatever became of it.
func (l *Log) Ran(project string, took time.Duration) {
	l.each(project, func(m *minute) { m.took[Command].add(took) })
}

// Ended counts a command that ended. cause is empty where it ended by itself with the exit code zero.
func (l *Log) Ended(project, cause string) {
	l.each(project, func(m *minute) { m.done[Command].Add(1) })
	if cause != "" {
		l.Failed(Command, project, cause)
	}
}

// Failed counts a failure by its cause.
func (l *Log) Failed(k Kind, project, cause string) {
	n := l.cause[cause] // OtherCause, where it is not in the table
	l.each(project, func(m *minute) { m.failed[k][n].Add(1) })
}

// Refused counts a connection, or a question for a name, that a policy did not let through.
func (l *Log) Refused(project string) {
	l.each(project, func(m *minute) { m.refused.Add(1) })
}

// Failures are so many of one kind with one cause.
type Failures struct {
	Kind  Kind
	Cause string
	Count int64
}

// Times are how long something took: half of them no longer than P50, and 95 of 100 no longer than P95, both within an
// eighth. Count zero: there are none.
type Times struct {
	Count    int64
	P50, P95 time.Duration
}

// Minute is what happened in one.
type Minute struct {
	At                         time.Time // its beginning
	Creates, Commands, Refused int64
	Failures                   int64
	Times                      [2]Times // by [Kind]
}

// Report is what happened in the last hour.
type Report struct {
	Since                      time.Time // an hour ago, or when the server began
	Creates, Commands, Refused int64
	Failures                   []Failures // those that there are, by kind, then as causes are in the table
	Times                      [2]Times   // by [Kind]
	Minutes                    []Minute   // in which something happened, oldest first
}

// Report returns what happened, of a project or ("") of the whole server. It is false for a project that is not counted by
// itself, since too many others are.
func (l *Log) Report(project string) (Report, bool) {
	now := l.clock()
	at := now.Unix() / 60
	first := at - Minutes + 1
	r := Report{Since: time.Unix(first*60, 0).UTC()}
	if l.since.After(r.Since) {
		r.Since = l.since.UTC()
	}
	s := &l.all
	if project != "" {
		l.mu.RLock()
		of, full := l.of[project], len(l.of) >= maxProjects && l.looked > at-Minutes
		l.mu.RUnlock()
		if of == nil {
			return r, !full
		}
		s = of
	}
	var took [kinds]counts
	var failed [kinds][maxCauses]int64
	for when := first; when <= at; when++ {
		m := s[when%Minutes].Load()
		if m == nil || m.at != when {
			continue
		}
		one := Minute{At: time.Unix(when*60, 0).UTC(), Creates: m.done[Create].Load(), Commands: m.done[Command].Load(), Refused: m.refused.Load()}
		for k := range kinds {
			for n := range l.names {
				c := int64(m.failed[k][n].Load())
				failed[k][n] += c
				one.Failures += c
			}
			c := m.took[k].read()
			one.Times[k] = c.times()
			took[k].plus(&c)
		}
		r.Creates += one.Creates
		r.Commands += one.Commands
		r.Refused += one.Refused
		r.Minutes = append(r.Minutes, one)
	}
	for k := range kinds {
		r.Times[k] = took[k].times()
		for n, name := range l.names {
			if c := failed[k][n]; c > 0 {
				r.Failures = append(r.Failures, Failures{k, name, c})
			}
		}
	}
	return r, true
}
