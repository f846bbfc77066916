// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	byAge "container/list"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what is kept for clients that come back, in bytes.
const (
	keptOfSession = 4 << 20
	keptInAll     = 64 << 20
	// costOfStream and costOfEvent are what keeping nothing costs.
	costOfStream = 512
	costOfEvent  = 64
)

// streams keeps what was sent to the clients of sessions, so that one that lost its connection
// can ask for what it missed. It is the SDK's event store, and so learns of the beginning and the
// end of sessions and streams, too, and informs sessions and the request's delivery.
//
// Memory is bounded for each session and in all: what was sent longest ago goes first. A client
// that asks for what has gone gets an error that says so, and never a stream with a hole in it.
// It is safe for concurrent use.
type streams struct {
	ofSession, inAll int
	sessions         *sessions

	mu    sync.Mutex
	kept  map[string]map[string]*stream // by session and stream
	bytes int
	size  map[string]int // by session
	old   *byAge.List    // of *stream, the one that was written to longest ago first
}

// stream is what was sent on one.
type stream struct {
	session, id string
	first       int // the number of the first event that is kept
	events      [][]byte
	bytes       int
	place       *byAge.Element
	lost        bool // an event was lost without its number
	delivery    *delivery
}

func newStreams(s *sessions) *streams {
	return &streams{
		ofSession: keptOfSession, inAll: keptInAll, sessions: s,
		kept: make(map[string]map[string]*stream), size: make(map[string]int), old: byAge.New(),
	}
}

// Open begins a stream of a session; "" is the one of the session itself.
func (st *streams) Open(ctx context.Context, session, id string) error {
	if id == "" {
		st.sessions.begin(ctx, session)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.openLocked(session, id, false)
	if d := deliveryOf(ctx); d != nil && id != "" {
		d.open(id)
		s.delivery = d
	}
	return nil
}

func (st *streams) openLocked(session, id string, lost bool) *stream {
	s := &stream{session: session, id: id, lost: lost}
	s.place = st.old.PushBack(s)
	if st.kept[session] == nil {
		st.kept[session] = make(map[string]*stream)
	}
	st.kept[session][id] = s
	st.countLocked(s, costOfStream)
	return s
}

func (st *streams) countLocked(s *stream, n int) {
	s.bytes += n
	st.bytes += n
	if st.size[s.session] += n; st.size[s.session] == 0 {
		delete(st.size, s.session)
	}
}

// Append keeps an event that is sent on a stream. Data is not changed later.
func (st *streams) Append(_ context.Context, session, id string, data []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.kept[session][id]
	if s == nil { // it was dropped, with its numbers
		s = st.openLocked(session, id, true)
	}
	st.old.MoveToBack(s.place)
	if s.delivery != nil {
		s.delivery.sent()
	}
	s.events = append(s.events, data)
	st.countLocked(s, costOfEvent+len(data))
	for st.size[session] > st.ofSession && st.dropLocked(session, s) {
	}
	for st.bytes > st.inAll && st.dropLocked("", s) {
	}
	return nil
}

// dropLocked drops the stream that was written to longest ago, of one session or of all, or else
// the first event of the stream that is written to. It reports whether it dropped anything.
func (st *streams) dropLocked(session string, but *stream) bool {
	for e := st.old.Front(); e != nil; e = e.Next() {
		s, _ := e.Value.(*stream)
		if s == but || session != "" && s.session != session {
			continue
		}
		st.forgetLocked(s)
		return true
	}
	if len(but.events) < 2 {
		return false // a single answer may be larger than the bound
	}
	st.countLocked(but, -costOfEvent-len(but.events[0]))
	but.events[0] = nil
	but.events = but.events[1:]
	but.first++
	return true
}

func (st *streams) forgetLocked(s *stream) {
	st.old.Remove(s.place)
	st.countLocked(s, -s.bytes)
	delete(st.kept[s.session], s.id)
	if len(st.kept[s.session]) == 0 {
		delete(st.kept, s.session)
	}
}

// After returns what was sent after the event with that number.
func (st *streams) After(_ context.Context, session, id string, index int) iter.Seq2[[]byte, error] {
	events, err := st.after(session, id, index)
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range events {
			if !yield(data, nil) {
				return
			}
		}
	}
}

func (st *streams) after(session, id string, index int) ([][]byte, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.kept[session][id]
	switch {
	case id == "" && index < 0 && s == nil:
		return nil, nil
	case id == "" && index < 0:
		// The session's own stream begins anew, with what there is. The SDK counts
		// from here, so that numbers no longer mean what they did if some is missing.
		s.lost = s.lost || s.first > 0
		return slices.Clone(s.events), nil
	case s == nil:
		return nil, fmt.Errorf("stream %q: %w", id, mcp.ErrEventsPurged)
	case s.lost || index+1 < s.first:
		return nil, fmt.Errorf("event %d of stream %q: %w", index+1, id, mcp.ErrEventsPurged)
	case index+1 >= s.first+len(s.events):
		return nil, nil
	}
	return slices.Clone(s.events[index+1-s.first:]), nil
}

// SessionClosed drops all streams of a session.
func (st *streams) SessionClosed(_ context.Context, session string) error {
	st.sessions.finish(session)
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.kept[session] {
		st.forgetLocked(s)
	}
	return nil
}
