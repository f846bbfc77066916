// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/redact"
)

// Status says what a session can do.
type Status string

// The statuses.
const (
	Idle Status = "idle" // Execute
	Busy Status = "busy" // Wait, Interrupt
	Dead Status = "dead" // nothing; start another
)

// Session is one context. Execute, Wait and Resume's first Wait take turns; Interrupt and
// the other methods may be called beside them.
type Session struct {
	language Language
	token    string
	carrier  Transport
	turn     chan struct{} // who holds its one token reads from the carrier

	// Of whose turn it is.
	out, err   splitter
	received   [2]int64 // bytes of stdout and stderr
	limit      [2]int64
	pings      int64
	ponged     int64
	heard      *message // of the handshake
	stray      [2][]byte
	run        *run
	lastSeq    int64
	at         time.Time // of the chunk that is read
	said       []byte    // the last of stderr before the handshake
	lastID     int64
	uncertain  bool // a signal may not have arrived yet
	set        *redact.Set
	redactions [2]redaction // of stdout and stderr

	signal  sync.Mutex // held while an interrupt is sent
	writing sync.Mutex // held while a request is

	mu      sync.Mutex
	status  Status
	running *interruptible // the cell that runs
	state   State
	death   error
	exit    *Exit
	version string
	secret  [][]byte    // to be masked
	newest  *redact.Set // of them
}

// Options is what a session need not be told.
type Options struct {
	// MaxStdout and MaxStderr are how many bytes of each stream the transport
	// carries in the kernel's whole life; 0: any number. A session that comes to the
	// bound is dead.
	MaxStdout, MaxStderr int64
	// Redact is given to [Session.Redact] before anything is read.
	Redact [][]byte
}

// State is what it takes to go on with a session by another transport to the same kernel, or in
// another program. Its token must not reach the sandbox but through a Session.
type State struct {
	Language  Language `json:"language"`
	Token     string   `json:"token"`
	LastID    int64    `json:"last_id"`
	LastPing  int64    `json:"last_ping"`
	Running   bool     `json:"running"`
	Stops     bool     `json:"stops,omitempty"` // the kernel knows StopSignal
	Cursor    int64    `json:"cursor"`          // the transport is to begin after the chunk with this number
	MaxStdout int64    `json:"max_stdout"`
	MaxStderr int64    `json:"max_stderr"`
	Stdout    int64    `json:"stdout"` // bytes up to the cursor
	Stderr    int64    `json:"stderr"`
}

var tokenForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Start speaks to a kernel that was just started by [Command], until it is ready or ctx
// is done. An image that cannot run the language is fault.Unsupported. After an error the
// transport is the caller's to end.
func Start(ctx context.Context, l Language, t Transport, o Options) (*Session, error) {
	if Command(l) == nil {
		_, err := ParseLanguage(string(l))
		return nil, err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	s := newSession(State{Language: l, Token: hex.EncodeToString(b[:]), Stops: l == Bash, MaxStdout: o.MaxStdout, MaxStderr: o.MaxStderr}, t)
	s.Redact(o.Redact)
	writeErr := t.Write(ctx, l.hello(s.token))
	for s.heard == nil {
		err := s.pump(ctx, &Handler{})
		switch {
		case err == nil:
		case s.ended() != nil:
			return nil, l.missing(*s.ended(), tail(s.said))
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			return nil, err
		}
	}
	if s.heard.T == "refuse" {
		return nil, l.refusal(s.heard.Version)
	}
	if writeErr != nil {
		return nil, fault.Wrap(fault.Unavailable, writeErr, "the %s kernel did not take its text", l)
	}
	s.version = clean(s.heard.Version, 40)
	return s, nil
}

// Resume goes on with a kernel, by a transport that begins after the state's
// cursor. If a cell was running, Wait follows it, from its begin on.
func Resume(st State, t Transport) (*Session, error) {
	if Command(st.Language) == nil || !tokenForm.MatchString(st.Token) || st.LastID < 0 || st.LastPing < 0 || st.Cursor < 0 {
		return nil, fault.New(fault.Invalid, "the state of the context is none")
	}
	s := newSession(st, t)
	s.heard, s.out.begun, s.err.begun = &message{}, true, true
	if st.Running {
		s.begin(st.LastID)
		s.run.resumed = true
	}
	return s, nil
}

func newSession(st State, t Transport) *Session {
	s := &Session{
		language: st.Language, token: st.Token, carrier: t, turn: make(chan struct{}, 1), status: Idle, state: st,
		lastID: st.LastID, lastSeq: st.Cursor, pings: st.LastPing, received: [2]int64{st.Stdout, st.Stderr}, limit: [2]int64{st.MaxStdout, st.MaxStderr},
	}
	s.out.mark, s.err.mark = marker(st.Token), marker(st.Token)
	s.turn <- struct{}{}
	return s
}

// Language is what its cells are written in.
func (s *Session) Language() Language { return s.language }

// Version is the interpreter's, as it says; empty after Resume.
func (s *Session) Version() string { return s.version }

// Status is what the session can do, as far as is known: a kernel that
// ended while no call listened is found dead by the next call.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// State is what Resume needs, as of now.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Exit is how the kernel ended, and nil as long as that is not known.
func (s *Session) Exit() *Exit { return s.ended() }

func (s *Session) ended() *Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// begin makes the session busy with a cell.
func (s *Session) begin(id int64) {
	s.lastID = id
	s.run = &run{id: id}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = Busy
	s.running = &interruptible{id: id}
	s.state.LastID, s.state.Running = id, true
}

// finish makes it idle again, and waits for a signal that is under way: it must not
// meet the next cell.
func (s *Session) finish() {
	s.signal.Lock()
	defer s.signal.Unlock()
	s.mu.Lock()
	if s.running != nil && (s.running.wanted || s.running.stopped) {
		s.uncertain = true
	}
	s.run, s.running = nil, nil
	if s.status == Busy {
		s.status = Idle
		s.state.Running = false
	}
	s.mu.Unlock()
	s.settle()
}

// die makes the session dead, of its first cause.
func (s *Session) die(err error, exit *Exit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.running = Dead, nil
	if s.death == nil {
		s.death, s.exit = err, exit
	}
	return s.death
}

// alive is the error that every call on a dead session gets.
func (s *Session) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == Dead {
		return s.death
	}
	return nil
}

// pump takes the next chunk off the transport. An error that does not make the session dead is
// that of the transport, or of ctx; then it may be called again.
func (s *Session) pump(ctx context.Context, h *Handler) error {
	if err := s.alive(); err != nil {
		return err
	}
	c, err := s.next(ctx, h)
	if errors.Is(err, io.EOF) {
		s.out.rest(func(b []byte) { s.text(0, b, h) })
		s.err.rest(func(b []byte) { s.text(1, b, h) })
		s.release(0, h)
		s.release(1, h)
		exit := s.carrier.Exit()
		return s.die(fault.New(fault.State, "the context has ended (%s), and its variables with it", exit).
			WithRemedy("start the context anew"), &exit)
	}
	if err != nil {
		return err
	}
	i, split := 0, &s.out
	if c.Stderr {
		i, split = 1, &s.err
	}
	s.received[i] += int64(len(c.Data))
	s.at = c.At
	err = split.feed(c.Data, func(b []byte) { s.text(i, b, h) }, func(b []byte) error { return s.message(i, b, h) })
	if err != nil {
		return s.die(fault.Wrap(fault.Unavailable, err, "the context's kernel said what makes no sense").
			WithRemedy("start the context anew; code in it may have written to the kernel's own descriptors"), nil)
	}
	if s.limit[i] > 0 && s.received[i] >= s.limit[i] {
		return s.die(fault.New(fault.Exhausted, "the context has written the %d bytes that one may write in its life", s.limit[i]).
			WithRemedy("start the context anew; write large output to files"), nil)
	}
	s.lastSeq = c.Seq
	s.settle()
	return nil
}

// settle moves the cursor on, if nothing would be cut by that.
func (s *Session) settle() {
	if s.run == nil && s.out.clean() && s.err.clean() {
		s.mu.Lock()
		s.state.Cursor, s.state.Stdout, s.state.Stderr = s.lastSeq, s.received[0], s.received[1]
		s.mu.Unlock()
	}
}

// maxStray is how much output is kept for the next cell, of each stream.
const maxStray = 64 << 10

// pass passes output on, or keeps the last of it when no cell runs.
func (s *Session) pass(stream int, b []byte, h *Handler) {
	if split := [2]*splitter{&s.out, &s.err}[stream]; !split.begun {
		if stream == 1 {
			s.said = last(append(s.said, b...), 2048)
		}
		return
	}
	if s.run == nil || stream == 0 && s.run.probe > 0 && !s.run.begun {
		s.stray[stream] = last(append(s.stray[stream], b...), maxStray)
		return
	}
	h.output(stream, b)
}

func last(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// tail is the last line of text, to be shown.
func tail(b []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(b), "�"))
	if text == "" {
		return "it said nothing"
	}
	all := strings.Split(text, "\n")
	return clean(all[len(all)-1], 300)
}

// message acts on what the kernel says on a stream.
func (s *Session) message(stream int, b []byte, h *Handler) error {
	s.release(stream, h) // it came before
	m, err := parseMessage(b)
	if err != nil {
		return err
	}
	m.redact(s.current(h))
	switch {
	case stream == 1 && m.T != "sync":
		return nil
	case m.T == "ready", m.T == "refuse":
		if s.heard == nil {
			s.heard = m
		}
	case m.T == "pong":
		s.ponged = max(s.ponged, min(m.ID, s.pings))
	case s.run != nil && m.ID == s.run.id:
		return s.run.message(s, stream, m, h)
	}
	return nil
}

// take waits for the turn.
func (s *Session) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	default:
	}
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) give() { s.turn <- struct{}{} }

// ping asks the kernel for an answer.
func (s *Session) ping(ctx context.Context) error {
	s.pings++
	s.mu.Lock()
	s.state.LastPing = s.pings
	s.mu.Unlock()
	return s.write(ctx, s.language.ping(s.pings))
}

// sync waits until the kernel has read all that it was sent, and any signal has arrived.
func (s *Session) sync(ctx context.Context) error {
	if err := s.ping(ctx); err != nil {
		return err
	}
	for s.ponged < s.pings {
		wait, cancel := context.WithTimeout(ctx, pingAgain)
		err := s.pump(wait, &Handler{})
		late := wait.Err() != nil
		cancel()
		if late && ctx.Err() == nil && s.alive() == nil { // a late signal has made bash drop the line
			err = s.write(ctx, s.language.ping(s.pings))
		}
		if err != nil {
			return err
		}
	}
	s.uncertain = false
	return nil
}

// pingAgain is when an answer is late.
const pingAgain = time.Second

// write writes one request, whole, beside others.
func (s *Session) write(ctx context.Context, b []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.carrier.Write(ctx, b)
}
