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
// masked. At a terminal somebody waits to see what was typed, and a prompt.
const (
	veilPatience         = 50 * time.Millisecond
	terminalVeilPatience = 10 * time.Millisecond
)

// veil keeps values out of one stream, before it is logged. The stream's readMu guards it.
type veil struct {
	mask     *redact.Stream
	patience time.Duration
	held     []byte      // of the stream's end: what may be the beginning of a value
	since    time.Time   // when the first byte of it came
	timer    *time.Timer // lets go of it; nil: it was never needed
}

// veils gives each stream of a new process its veil. Without values it has none, and costs
// nothing.
func (p *process) veils(set *redact.Set) {
	if set == nil {
		return
	}
	for _, st := range p.streams {
		if st == nil {
			continue
		}
		st.veil = &veil{mask: set.Stream(), patience: veilPatience}
		if st.f == p.terminal {
			st.veil.patience = terminalVeilPatience
		}
	}
}

// veiled is output of a stream with a veil: b is the room for a log's header, what was held
// back, and what one read brought behind it.
func (p *process) veiled(st *stream, b []byte) {
	v := st.veil
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
		v.timer = time.AfterFunc(v.patience, func() { p.overheld(st) })
	default:
		v.timer.Reset(v.patience - time.Since(v.since))
	}
}

// overheld lets go of what was held back for long enough: the program has written nothing
// meanwhile that makes a value of it.
func (p *process) overheld(st *stream) {
	p.drainBuffered(st) // in case it is we who are late
	st.readMu.Lock()
	defer st.readMu.Unlock()
	v := st.veil
	if len(v.held) == 0 {
		return
	}
	if left := v.patience - time.Since(v.since); left > 0 {
		v.timer.Reset(left)
		return
	}
	p.unveil(st)
}

// unveil logs what is held back as it is. The caller has the stream's readMu. After the
// stream's end it is called once more, and nothing is held from then on.
func (p *process) unveil(st *stream) {
	v := st.veil
	if v == nil || len(v.held) == 0 {
		return
	}
	v.timer.Stop()
	b := append(make([]byte, wire.LogHeaderLen), v.held...)
	v.held = nil
	p.output(st, b)
}

// unveilAll does so for all streams, of a process that has ended.
func (p *process) unveilAll() {
	for _, st := range p.streams {
		if st != nil && st.veil != nil {
			st.readMu.Lock()
			p.unveil(st)
			st.readMu.Unlock()
		}
	}
}

// masks keeps the last set that was made: commands of one sandbox have the same.
type masks struct {
	mu     sync.Mutex
	values [][]byte
	set    *redact.Set
}

func (m *masks) of(values [][]byte) *redact.Set {
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

// redacted is the command as its record has it.
func redacted(st *wire.Start, set *redact.Set) *wire.Start {
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
