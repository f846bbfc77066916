// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/sandbox"
)

// Bounds. A token that says a new name with each message has only its newest ones kept.
const (
	ofToken = 16
	inAll   = 2048
	maxWord = 80 // bytes of a name, a version, a method or a tool
)

// Message is one message of a client's, as it was answered.
type Message struct {
	Name, Version string // as the client calls itself; "": it did not say
	Title         string // likewise, for people; "": it has none
	Protocol      string // the protocol's version; "": not known
	Profile       string // the set of tools
	Method        string
	Tool          string // that it calls; "": none
	Listed        int    // how many tools it was told of; less than 0: it did not ask
}

// Client is a program that called, by one token.
type Client struct {
	Project, TokenID, Actor string
	Sandbox                 sandbox.ID // that the token is good for alone; "": it is good for more
	Name, Version, Title    string
	Protocol, Profile       string
	LastMethod, LastTool    string
	First, Last             time.Time
	Listed                  int       // tools that it was told of last
	ListedAt                time.Time // zero: never
	Messages, Calls         int64
}

// key is what makes two messages those of one client.
type key struct {
	project, token, actor, name, version, profile string
	sandbox                                       sandbox.ID
}

// Log has the clients that called since the server began. Its zero value is empty and good. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	all map[key]*Client
}

// Add remembers a message of a caller's. A message without a name, of a client whose other messages had one, goes to the one
// that called last by that token.
func (l *Log) Add(c access.Caller, m *Message, now time.Time) {
	m.Name, m.Version, m.Title = word(m.Name), word(m.Version), word(m.Title)
	k := key{c.Project, c.TokenID, c.Actor, m.Name, m.Version, m.Profile, c.Sandbox}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.all[k]
	if one == nil && m.Name == "" {
		one = l.latestLocked(k)
	}
	if one == nil {
		l.makeRoomLocked(k)
		one = &Client{Project: c.Project, TokenID: c.TokenID, Actor: c.Actor, Sandbox: c.Sandbox, Name: m.Name, Version: m.Version, Profile: m.Profile, First: now}
		if l.all == nil {
			l.all = make(map[key]*Client)
		}
		l.all[k] = one
	}
	one.Title, one.Protocol = cmp.Or(m.Title, one.Title), cmp.Or(word(m.Protocol), one.Protocol)
	one.Last, one.LastMethod, one.LastTool = now, word(m.Method), word(m.Tool)
	one.Messages++
	if m.Tool != "" {
		one.Calls++
	}
	if m.Listed >= 0 {
		one.Listed, one.ListedAt = m.Listed, now
	}
}

// word is what a client says, for a place that has one line.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return sandbox.Clip(strings.TrimSpace(text), maxWord)
}

// holder is the key's token alone.
func (k key) holder() key {
	return key{project: k.project, token: k.token, actor: k.actor, sandbox: k.sandbox}
}

func (l *Log) latestLocked(k key) *Client {
	var last *Client
	for o, c := range l.all {
		if o.holder() == k.holder() && o.profile == k.profile && (last == nil || c.Last.After(last.Last)) {
			last = c
		}
	}
	return last
}

// makeRoomLocked forgets who called longest ago, of the token or of all, where there are too many.
func (l *Log) makeRoomLocked(k key) {
	var own int
	var oldest, oldestOwn *key
	for o, c := range l.all {
		if oldest == nil || c.Last.Before(l.all[*oldest].Last) {
			oldest = &o
		}
		if o.holder() == k.holder() {
			own++
			if oldestOwn == nil || c.Last.Before(l.all[*oldestOwn].Last) {
				oldestOwn = &o
			}
		}
	}
	switch {
	case own >= ofToken:
		delete(l.all, *oldestOwn)
	case len(l.all) >= inAll:
		delete(l.all, *oldest)
	}
}

// List returns the clients that a caller may know of, who called last first: those of its own token, with the scope admin those
// of its project, with server:admin all.
func (l *Log) List(c access.Caller) []Client {
	everywhere, project := c.Require(access.ServerAdmin) == nil, c.Require(access.Admin) == nil
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Client, 0, len(l.all))
	for _, one := range l.all {
		if everywhere || one.Project == c.Project && (project || one.TokenID == c.TokenID && one.Actor == c.Actor && one.Sandbox == c.Sandbox) {
			out = append(out, *one)
		}
	}
	slices.SortFunc(out, func(a, b Client) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.TokenID, b.TokenID), cmp.Compare(a.Profile, b.Profile))
	})
	return out
}
