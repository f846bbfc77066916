// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandpit.dev/access"
)

// Bounds of open sessions. Clients open them and forget them, so that a bound is
// met by ending the one that was used longest ago: its client opens another.
const (
	sessionsOfToken = 256
	sessionsInAll   = 8192
)

// sessions are those that are open, of the handshake era and of HTTP+SSE. It is
// safe for concurrent use.
type sessions struct {
	ofToken, inAll int
	busy           func(session string) bool // has calls in progress
	end            func(session string)      // ends it, which calls finish

	mu   sync.Mutex
	open map[string]*opened
	of   map[string]int // how many, by identity; those that are being opened count
	all  int
}

type opened struct {
	identity string
	used     time.Time
}

func newSessions(busy func(string) bool, end func(string)) *sessions {
	return &sessions{
		ofToken: sessionsOfToken, inAll: sessionsInAll, busy: busy, end: end,
		open: make(map[string]*opened), of: make(map[string]int),
	}
}

// admit makes room for one more session of a caller's. The error is for people: all sessions are
// busy. done is called when the request that opens it has been served.
func (ss *sessions) admit(c access.Caller) (done func(), err error) {
	who := Identity(c)
	ss.mu.Lock()
	var ends []string
	if ss.of[who] >= ss.ofToken {
		ends = append(ends, ss.victimLocked(who))
	} else if ss.all >= ss.inAll {
		ends = append(ends, ss.victimLocked(""))
	}
	if len(ends) > 0 && ends[0] == "" {
		n := ss.of[who]
		ss.mu.Unlock()
		return nil, fmt.Errorf("this token has %d open sessions, and every one has a call in progress; end some, or wait for them", n)
	}
	ss.countLocked(who, 1)
	ss.mu.Unlock()
	for _, id := range ends {
		ss.end(id)
		ss.finish(id) // in case it was gone already
	}
	return func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.countLocked(who, -1)
	}, nil
}

func (ss *sessions) countLocked(who string, n int) {
	ss.all += n
	if ss.of[who] += n; ss.of[who] == 0 {
		delete(ss.of, who)
	}
}

// victimLocked returns the session that was used longest ago and has nothing in progress, of one
// token or of all; or "".
func (ss *sessions) victimLocked(who string) (id string) {
	var oldest time.Time
	for one, o := range ss.open {
		if who != "" && o.identity != who || id != "" && !o.used.Before(oldest) || ss.busy(one) {
			continue
		}
		id, oldest = one, o.used
	}
	return id
}

// begin adds a session that the request of ctx has opened.
func (ss *sessions) begin(ctx context.Context, id string) {
	c, ok := ctx.Value(callerKey{}).(access.Caller)
	if !ok || id == "" {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.open[id] == nil {
		ss.open[id] = &opened{Identity(c), time.Now()}
		ss.countLocked(Identity(c), 1)
	}
}

// use records that a session is in use, if it is the caller's.
func (ss *sessions) use(id string, c access.Caller) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if o := ss.open[id]; o != nil && o.identity == Identity(c) {
		o.used = time.Now()
	}
}

// finish removes a session that has ended. Calling it twice is fine.
func (ss *sessions) finish(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if o := ss.open[id]; o != nil {
		delete(ss.open, id)
		ss.countLocked(o.identity, -1)
	}
}
