// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sandpit.dev/network/policy"
)

// Entry is one thing that a sandbox tried to reach, and how often.
type Entry struct {
	Protocol string // dns, tcp, udp
	Name     string // as it was asked for, or as the connection named it; may be empty
	Address  netip.Addr
	Port     uint16
	Reason   policy.Reason // why it was refused; empty: it was not
	Learned  bool          // it was let through, though the policy has no place for it
	Secret   string        // of news: that a request to Name has this secret in it; no list of entries has it
	Count    int64
	First    time.Time
	Last     time.Time
}

// what tells entries apart. An address counts only where there is no name: a name may
// have many.
type what struct {
	protocol string
	name     string
	address  netip.Addr
	port     uint16
	reason   policy.Reason
	learned  bool // or a refusal would hide behind what was let through before
}

// maxEntries bounds a journal: a program that tries every address costs no more.
const maxEntries = 512

// Journal counts what a sandbox tried to reach. It is safe for concurrent use.
type Journal struct {
	news func(Entry) // of an entry's first time; may be nil

	mu      sync.Mutex
	entries map[what]*Entry
	dropped int64
	used    map[use]struct{} // of which news was told
}

// use is a secret, and a host that a request with it went to.
type use struct{ secret, host string }

// NewJournal makes an empty journal. news is told of each entry's first time.
func NewJournal(news func(Entry)) *Journal {
	return &Journal{news: news, entries: make(map[what]*Entry)}
}

func (j *Journal) note(e Entry) {
	key := what{e.Protocol, e.Name, e.Address, e.Port, e.Reason, e.Learned}
	if e.Name != "" {
		key.address = netip.Addr{}
	}
	at := time.Now()
	j.mu.Lock()
	was := j.entries[key]
	fresh := was == nil
	switch {
	case !fresh:
		was.Count++
		was.Last, was.Address = at, e.Address
	default:
		if len(j.entries) >= maxEntries && !j.forget() {
			j.dropped++
			fresh = false // else a program that tries every name makes news without end
		}
		e.Count, e.First, e.Last = 1, at, at
		kept := e // of which e, that news is told, is no part: others count in it by then
		j.entries[key] = &kept
	}
	j.mu.Unlock()
	if fresh && j.news != nil {
		j.news(e)
	}
}

// use tells news of the first request to a host that has a secret in it.
func (j *Journal) use(secret, host string) {
	of := use{secret, host}
	j.mu.Lock()
	_, known := j.used[of]
	if known || j.news == nil || len(j.used) == maxEntries {
		j.mu.Unlock()
		return
	}
	if j.used == nil {
		j.used = make(map[use]struct{})
	}
	j.used[of] = struct{}{}
	j.mu.Unlock()
	j.news(Entry{Protocol: "tcp", Name: host, Secret: secret, Count: 1, First: time.Now()})
}

// forget makes room: what was let through goes first, the oldest of it. False: there
// was none, and the oldest of the rest went, for what is tried now is of more use.
func (j *Journal) forget() bool {
	var oldest what
	var at time.Time
	allowed := false
	for key, e := range j.entries {
		passed := e.Reason == policy.Allowed && !e.Learned
		if at.IsZero() || passed && !allowed || passed == allowed && e.Last.Before(at) {
			oldest, at, allowed = key, e.Last, passed
		}
	}
	delete(j.entries, oldest)
	return allowed
}

// miss counts what was lost before it could be noted.
func (j *Journal) miss(n int64) {
	if n > 0 {
		j.mu.Lock()
		j.dropped += n
		j.mu.Unlock()
	}
}

// Entries returns what was noted, the latest first, and how much had no room, here or in the
// gate's queue of datagrams.
func (j *Journal) Entries() (entries []Entry, dropped int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return entries, j.dropped
}
