// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/sha256"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/session"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest/sessions"
	"sandpit.dev/fault"
)

// ConsoleConfig configures what people use by a browser.
type ConsoleConfig struct {
	Enabled bool `yaml:"enabled"` // false: nobody signs in
	// Idle is how long a session may be unused, 1m to Life: 12h. Life is how long one lasts at most: 168h.
	Idle time.Duration `yaml:"idle"`
	Life time.Duration `yaml:"life"`
}

func (c ConsoleConfig) check() error {
	if c.Life < session.MinIdle || c.Life > session.MaxLife {
		return fault.InvalidField("console.life", "%v is outside %v to %v", c.Life, session.MinIdle, session.MaxLife)
	}
	if c.Idle < session.MinIdle || c.Idle > c.Life {
		return fault.InvalidField("console.idle", "%v is outside %v to %v, which is console.life", c.Idle, session.MinIdle, c.Life)
	}
	return nil
}

// signIns signs people in; nil: nobody does. Its methods turn that into interfaces that are nil.
type signIns struct{ *session.Service }

func (p *surfaceParts) sessions(known credentials) signIns {
	if !p.console.Enabled {
		return signIns{}
	}
	return signIns{session.New(p.keys.Store(), known, session.Options{Idle: p.console.Idle, Life: p.console.Life, Logger: p.log})}
}

func (s signIns) checker() guard.Checker {
	if s.Service == nil {
		return nil
	}
	return s.Service
}

func (s signIns) verbs() sessions.Sessions {
	if s.Service == nil {
		return nil
	}
	return s.Service
}

// AdmitDigest is Admit for a token whose hash alone is known: one of the server's own.
func (c credentials) AdmitDigest(ctx context.Context, sum [sha256.Size]byte) (access.Caller, context.Context, func(), error) {
	return c.own.AdmitDigest(ctx, sum)
}
