// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// Choice says why a sandbox is made of what it is made of.
type Choice string

// The choices, in the order in which one goes before the next.
const (
	ChosenExplicitly Choice = "explicit" // the request names an image, a template or a snapshot
	ChosenBySkills   Choice = "skills"   // a template that is for a skill of the request
	ChosenByProject  Choice = "project"  // the project's default template
	ChosenByServer   Choice = "server"   // the server's
	ChosenByFallback Choice = "fallback" // the default image
)

// Template says what chose the image of a sandbox and, where that is a template, which one and what it
// starts. It is a value that never changes: a record gets another one.
type Template struct {
	ID       string // empty: no template
	Name     string
	Version  int
	ChosenBy Choice
	Start    Start
	Ready    Readiness // of the last start

	// Of a request for a sandbox alone.
	Asked  string   // a template by its name, NAME@VERSION or id; or the name of an image
	Skills []string // that the sandbox is to have
}

// Kept returns what a record keeps of t, which may be nil.
func (t *Template) Kept() *Template {
	if t == nil || t.ChosenBy == "" {
		return nil
	}
	k := *t
	k.Asked, k.Skills = "", nil
	return &k
}

// Start is what runs in a sandbox from each start on. The zero value is nothing.
type Start struct {
	Command string // run by a shell as the sandbox's user
	Ready   Probe
}

// Probe says when what was started is ready: once a command ends with 0, or something listens on a port. The
// zero value is ready at once.
type Probe struct {
	Command  string
	Port     int
	Interval time.Duration // from one look to the next
	Timeout  time.Duration // after it, it is not ready
}

// None reports whether there is nothing to wait for.
func (p Probe) None() bool { return p.Command == "" && p.Port == 0 }

// Readiness is what became of a start.
type Readiness struct {
	Of     time.Time // the start, as Sandbox.StartedAt
	At     time.Time // when it was known
	OK     bool
	Reason string // for people, where it is not OK
	Output string // the last that the command wrote, where it is not OK
}

// StartProcess returns the id of the process of the start command, as of the sandbox's last start; empty if
// there is none. It follows from the start, so that no server begins it twice.
func (s *Sandbox) StartProcess() string {
	if s.Template == nil || s.Template.Start.Command == "" || s.StartedAt.IsZero() {
		return ""
	}
	sum := sha256.Sum256([]byte(string(s.ID) + " " + strconv.FormatInt(s.StartedAt.UnixMicro(), 10)))
	return nameOf([idLen]byte(sum[:idLen]))
}

// Readiness returns what became of the sandbox's last start; nil while that is not known, or there is
// nothing to start.
func (s *Sandbox) Readiness() *Readiness {
	if s.Template == nil || s.Template.Start.Command == "" || s.Template.Ready.Of.UnixMicro() != s.StartedAt.UnixMicro() {
		return nil
	}
	return &s.Template.Ready
}
