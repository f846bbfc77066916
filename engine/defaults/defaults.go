// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults has what an operator may change while an engine runs: what requests get that leave fields out, and
// what all of them may have. It knows no verb.
package defaults

import (
	"path"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
)

// Settings are what an operator may change while an engine runs. A value of it is never changed.
type Settings struct {
	Defaults
	Images  image.Policy // what new sandboxes may have of them
	Network permit.Rules // of all sandboxes, also of those that there are
	// Variables are names and patterns, as of [path.Match], of the variables that requests may set
	// for a sandbox. Empty: all are.
	Variables []string
	// PublicPreviews reports whether a sandbox's ports can be shown to everyone.
	PublicPreviews bool
}

// Defaults are what a request that leaves a field out gets. Zero fields take
// the value named behind them.
type Defaults struct {
	Limits            sandbox.Limits // sandbox.DefaultLimits
	Most              sandbox.Limits // that a sandbox may ask for; sandbox.MaxLimits
	IdleTimeout       time.Duration  // sandbox.DefaultIdleTimeout; negative: never
	Retention         time.Duration  // sandbox.DefaultRetention; negative: never
	CommandTimeout    time.Duration  // 300 s
	MaxCommandTimeout time.Duration  // 24 h, which is also the most
	StopGrace         time.Duration  // 5 s; how long a stop waits for processes to end by themselves
	ForbidRoot        bool           // refuse commands and file operations as root
}

// MaxCommandTimeout is the longest time limit of a command that any server allows.
const MaxCommandTimeout = 24 * time.Hour

const (
	defaultCommandTimeout = 300 * time.Second
	defaultStopGrace      = 5 * time.Second
)

// Filled returns d with the values that its zero fields take. Clocks that are never are zero in it.
func (d Defaults) Filled() (Defaults, error) {
	d.Limits, d.Most = d.Limits.Or(sandbox.DefaultLimits()), d.Most.Or(sandbox.MaxLimits())
	d.IdleTimeout = clockDefault(d.IdleTimeout, sandbox.DefaultIdleTimeout)
	d.Retention = clockDefault(d.Retention, sandbox.DefaultRetention)
	if d.MaxCommandTimeout <= 0 || d.MaxCommandTimeout > MaxCommandTimeout {
		d.MaxCommandTimeout = MaxCommandTimeout
	}
	if d.CommandTimeout <= 0 {
		d.CommandTimeout = defaultCommandTimeout
	}
	d.CommandTimeout = min(d.CommandTimeout, d.MaxCommandTimeout)
	if d.StopGrace <= 0 {
		d.StopGrace = defaultStopGrace
	}
	if err := d.Most.Check(); err != nil {
		return d, err
	}
	return d, d.Limits.CheckUpTo(d.Most)
}

func clockDefault(d, def time.Duration) time.Duration {
	switch {
	case d == 0:
		return def
	case d < 0:
		return 0
	}
	return d
}

// Kept returns s with the retention that is the server's now, if it is to have that; nil if it is nil. A record that
// changes is another one.
func (s *Settings) Kept(b *sandbox.Sandbox) *sandbox.Sandbox {
	if b == nil || !b.RetentionDefault || b.Retention == s.Retention {
		return b
	}
	c := *b
	c.Retention = s.Retention
	return &c
}

// MaxVariables bounds the entries of [Settings.Variables].
const MaxVariables = 256

// CheckVariables checks a list of names and patterns. The error is Invalid and about field.
func CheckVariables(field string, all []string) error {
	if len(all) > MaxVariables {
		return fault.InvalidField(field, "has %d entries, more than %d", len(all), MaxVariables)
	}
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil || p == "" || len(p) > 255 {
			return fault.InvalidField(field, "%q is not a valid name or pattern of a variable", sandbox.Clip(p, 80)).WithRemedy("write it as LANG or APP_*")
		}
	}
	return nil
}

// Admit returns Denied if requests may not set one of the variables for a sandbox.
func (s *Settings) Admit(env map[string]string) error {
	if len(s.Variables) == 0 {
		return nil
	}
	for name := range env {
		if !s.allows(name) {
			return fault.New(fault.Denied, "env: the variable %s is not one that this server's operator allows", sandbox.Clip(name, 80)).
				WithRemedy("leave it out, set it in the command itself, or ask the operator to add it to allowed_variables")
		}
	}
	return nil
}

func (s *Settings) allows(name string) bool {
	for _, p := range s.Variables {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}
