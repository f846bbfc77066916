// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"
)

// form is how a stream of events looks.
type form interface {
	media() string
	alive() []byte
	event(b []byte, e Event) ([]byte, error)
}

const eventsType = "text/event-stream"

// serverSent is the form of server-sent events.
type serverSent struct{}

func (serverSent) media() string { return eventsType }
func (serverSent) alive() []byte { return []byte(": alive\n\n") }

func (serverSent) event(b []byte, e Event) ([]byte, error) {
	if e.Name == "" {
		b = append(b, "id: "...)
		b = append(b, e.ID...)
		return append(b, "\n\n"...), nil
	}
	payload, raw := e.Data.(json.RawMessage)
	if !raw {
		var err error
		if payload, err = json.Marshal(e.Data); err != nil {
			return b, err
		}
	}
	b = append(b, "event: "...)
	b = append(b, e.Name...)
	switch {
	case e.Seq > 0:
		b = append(b, "\nid: "...)
		b = strconv.AppendInt(b, e.Seq, 10)
	case e.ID != "":
		b = append(b, "\nid: "...)
		b = append(b, e.ID...)
	}
	b = append(b, "\ndata: "...)
	b = append(b, payload...) // JSON has no line breaks of its own
	return append(b, "\n\n"...), nil
}

// frames is a form that has bytes as they are: each frame has its length before it, in 4 bytes,
// and then a byte that is 0 for an event in JSON.
type frames struct{ mediaType string }

func (f frames) media() string { return f.mediaType }
func (frames) alive() []byte   { return make([]byte, 4) }

func (frames) event(b []byte, e Event) ([]byte, error) {
	payload, err := json.Marshal(struct {
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{e.Name, e.Data})
	if err != nil {
		return b, err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(payload)))
	b = append(b, 0)
	return append(b, payload...), nil
}

// SendBytes sends a frame of bytes at once: the byte kind, which is not 0, 8 bytes with its
// number and 8 with its time as nanoseconds of Unix time, and the bytes. It is for a stream of
// frames.
func (s *Events) SendBytes(kind byte, seq int64, at time.Time, data []byte) error {
	return s.send(func(b []byte) ([]byte, error) {
		b = binary.BigEndian.AppendUint32(b, uint32(1+8+8+len(data)))
		b = append(b, kind)
		b = binary.BigEndian.AppendUint64(b, uint64(seq))
		b = binary.BigEndian.AppendUint64(b, uint64(at.UnixNano()))
		return append(b, data...), nil
	})
}

// Patient lets the client take nothing for d, from now on and in all, before it counts as gone.
// hurry ends that, also for an event that is being sent; it may be called at any time.
func (s *Events) Patient(d time.Duration) (hurry func()) { return s.out.patient(d) }
