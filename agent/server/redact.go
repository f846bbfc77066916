// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"sandpit.dev/agent/wire"
	"sandpit.dev/redact"
)

// How long the end of a stream is held back that may be the beginning of a value to be
// masked. At a terminal somebody waits to see what was typed, and a prompt. What is likelyDepth bytes
// of a value or more is hardly anything else, and the program that writes it may have lost its processor.
const (
	redactPatience         = 50 * time.Millisecond
	terminalRedactPatience = 10 * time.Millisecond
	likelyRedactPatience   = time.Second
	likelyDepth            = 8
)

// redaction keeps values out of one stream, before it is logged. The stream's readMu guards it.
type redaction struct {
	mask     *redact.Stream
	patience time.Duration // with less than likelyDepth bytes
	held     []byte        // of the stream's end: what may be the beginning of a value
	since    time.Time     // when the first byte of it came
	timer    *time.Timer   // releases it; nil: it was never needed
}

// redactStreams has the values kept out of each stream of a new process. Without values it
// costs nothing.
func (p *process) redactStreams(set *redact.Set) {
	if set == nil {
		return
	}
	for _, st := range p.streams {
		if st == nil {
			continue
		}
		st.redaction = &redaction{mask: set.Stream(), patience: redactPatience}
		if st.f == p.terminal {
			st.redaction.patience = terminalRedactPatience
		}
	}
}

// redactOutput logs output without values: b is the room for a log's header, what was held
// back, and what one read brought behind it.
func (p *process) redactOutput(st *stream, b []byte) {
	v := st.redaction
	text, before := b[wire.LogHeaderLen:], len(v.held)
	ready := v.mask.Mask(text, before)
	if ready >= before {
		v.since = time.Now()
	}
	v.held = append(v.held[:0], text[ready:]...)
	if ready > 0 {
		p.output(st, b[:wire.LogHeaderLen+ready])
	}
	switch {
	case len(v.held) == 0:
		v.held = nil // a process that waits holds no memory for it
		if v.timer != nil {
			v.timer.Stop()
		}
	case v.timer == nil:
		v.timer = time.AfterFunc(v.left(), func() { p.logLate(st) })
	default:
		v.timer.Reset(v.left())
	}
}

// left returns how much longer what is held waits for more.
func (v *redaction) left() time.Duration {
	patience := v.patience
	if len(v.held) >= likelyDepth {
		patience = likelyRedactPatience
	}
	return patience - time.Since(v.since)
}

// logLate logs what was held back for long enough: the program has written nothing
// since that makes a value of it.
func (p *process) logLate(st *stream) {
	p.drainBuffered(st) // in case it is we who are late
	st.readMu.Lock()
	defer st.readMu.Unlock()
	v := st.redaction
	if len(v.held) == 0 {
		return
	}
	if left := v.left(); left > 0 {
		v.timer.Reset(left)
		return
	}
	p.logHeld(st)
}

// logHeld logs what is held back as it is. The caller has the stream's readMu. After the
// stream's end it is called once more, and nothing is held from then on.
func (p *process) logHeld(st *stream) {
	v := st.redaction
	if v == nil || len(v.held) == 0 {
		return
	}
	v.timer.Stop()
	b := append(make([]byte, wire.LogHeaderLen), v.held...)
	v.held = nil
	p.output(st, b)
}

// logAllHeld is logHeld for all streams, of a process that has ended.
func (p *process) logAllHeld() {
	for _, st := range p.streams {
		if st != nil && st.redaction != nil {
			st.readMu.Lock()
			p.logHeld(st)
			st.readMu.Unlock()
		}
	}
}

// redactCache keeps the set that was made last: commands of one sandbox have the same values.
type redactCache struct {
	mu     sync.Mutex
	values [][]byte
	set    *redact.Set
}

func (m *redactCache) get(values [][]byte) *redact.Set {
	if len(values) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.EqualFunc(m.values, values, bytes.Equal) {
		m.values, m.set = values, redact.New(redact.Output, values)
	}
	return m.set
}

// redactStart returns the command as its record has it.
func redactStart(st *wire.Start, set *redact.Set) *wire.Start {
	if set == nil {
		return st
	}
	c := *st
	c.Shell, c.Argv = set.String(c.Shell), slices.Clone(c.Argv)
	for i, a := range c.Argv {
		c.Argv[i] = set.String(a)
	}
	return &c
}
