// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"sandpit.dev/redact"
)

// maxRedact bounds the values that a session masks.
const maxRedact = 256

// heldPatience is how long the end of a stream is held back that may be the beginning of
// a value to be masked.
const heldPatience = 50 * time.Millisecond

// Redact keeps values out of all that the session passes on from now on: of output, of the
// texts of results, and of errors each byte of an occurrence becomes a '*', as package redact
// finds them. Images and other binary forms stay as they are. What an earlier call named stays masked, up to
// 256 values, since a kernel has what it was started with. It may be called at any
// time; a cell that runs notices it at its next output.
//
// The masking is done here and not where the kernel's streams are carried: messages
// stand in them, which it would break.
func (s *Session) Redact(values [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.secret)
	for _, v := range values {
		if len(v) > 0 && !slices.ContainsFunc(all, func(o []byte) bool { return bytes.Equal(o, v) }) {
			all = append(all, bytes.Clone(v))
		}
	}
	if len(all) == len(s.secret) {
		return
	}
	s.secret = all[max(0, len(all)-maxRedact):]
	s.newest = redact.New(redact.Code, s.secret)
}

// redaction masks the output of one stream. Its zero value passes it on.
type redaction struct {
	mask  *redact.Stream // nil: nothing is masked
	held  []byte
	since time.Time // when the first byte of held came
}

// current returns the set to mask by. The caller has the turn.
func (s *Session) current(h *Handler) *redact.Set {
	s.mu.Lock()
	newest := s.newest
	s.mu.Unlock()
	if newest != s.set {
		s.set = newest
		for i := range s.redactions {
			s.release(i, h)
			s.redactions[i].mask = newest.Stream()
		}
	}
	return s.set
}

// text passes output on, but for what may be the beginning of a value.
func (s *Session) text(stream int, b []byte, h *Handler) {
	if s.current(h) == nil {
		s.pass(stream, b, h)
		return
	}
	v := &s.redactions[stream]
	before := len(v.held)
	all := append(slices.Clip(v.held), b...) // a copy: b is the transport's
	ready := v.mask.Mask(all, before)
	if ready >= before {
		v.since = time.Now()
	}
	if v.held = all[ready:]; ready > 0 {
		s.pass(stream, all[:ready], h)
	}
}

// release passes on what is held back of a stream.
func (s *Session) release(stream int, h *Handler) {
	if b := s.redactions[stream].held; len(b) > 0 {
		s.redactions[stream].held = nil
		s.pass(stream, b, h)
	}
}

// next takes the next chunk off the transport. While it waits, it passes on what was held
// back for too long.
func (s *Session) next(ctx context.Context, h *Handler) (Chunk, error) {
	for {
		left, holds := heldPatience, false
		for i := range s.redactions {
			v := &s.redactions[i]
			if len(v.held) == 0 {
				continue
			}
			if n := heldPatience - time.Since(v.since); n <= 0 {
				s.release(i, h)
			} else {
				left, holds = min(left, n), true
			}
		}
		if !holds {
			return s.carrier.Next(ctx)
		}
		wait, cancel := context.WithTimeout(ctx, left)
		c, err := s.carrier.Next(wait)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return c, err
		}
	}
}

// redact masks what a message says for people.
func (m *message) redact(set *redact.Set) {
	if set == nil {
		return
	}
	m.Name, m.Value, m.Version = set.String(m.Name), set.String(m.Value), set.String(m.Version)
	if len(m.Traceback) > 0 {
		m.Traceback = strings.Split(set.String(strings.Join(m.Traceback, "\n")), "\n")
	}
	for i, name := range m.Omitted {
		m.Omitted[i] = set.String(name)
	}
	for name, value := range m.Data {
		if isBinary(strings.ToLower(name)) {
			continue
		}
		if masked := redactJSON(set, value); masked != nil {
			m.Data[name] = masked
		}
	}
}

// isBinary reports whether a form is of bytes that no text is, in base64: a short value may
// stand in it by chance.
func isBinary(mime string) bool {
	kind, _, _ := strings.Cut(mime, "/")
	switch kind {
	case "image":
		return mime != "image/svg+xml"
	case "audio", "video", "font":
		return true
	}
	return mime == "application/pdf" || mime == "application/octet-stream"
}

// redactJSON returns JSON with the values masked in its strings, and numbers with a value in
// them made strings; nil where there is nothing to mask.
func redactJSON(set *redact.Set, raw json.RawMessage) json.RawMessage {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil
		}
		masked := set.String(text)
		if masked == text {
			return nil
		}
		return quoted(masked)
	}
	if !set.Bytes(bytes.Clone(raw)) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	var open []nesting
	for {
		t, err := d.Token()
		if err != nil { // the end: raw was JSON before
			return out.Bytes()
		}
		if c, ok := t.(json.Delim); ok && (c == ']' || c == '}') {
			open = open[:len(open)-1]
			out.WriteByte(byte(c))
			continue
		}
		if n := len(open); n > 0 {
			out.WriteString(open[n-1].before())
		}
		switch t := t.(type) {
		case json.Delim:
			out.WriteByte(byte(t))
			open = append(open, nesting{object: t == '{'})
		case string:
			out.Write(quoted(set.String(t)))
		case json.Number:
			if masked := set.String(t.String()); masked != t.String() {
				out.Write(quoted(masked))
			} else {
				out.WriteString(masked)
			}
		default: // true, false, null
			b, _ := json.Marshal(t)
			out.Write(b)
		}
	}
}

// nesting is where one is in an array or an object.
type nesting struct {
	object bool
	n      int // of its strings and values so far
}

// before returns what stands before the next one.
func (p *nesting) before() string {
	p.n++
	switch {
	case p.n == 1:
		return ""
	case p.object && p.n%2 == 0:
		return ":"
	}
	return ","
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always has JSON
	return b
}
