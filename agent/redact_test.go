// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"net"
	"testing"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// recorded is a connection that keeps what is sent.
type recorded struct {
	answer
	sent bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) { return r.sent.Write(b) }

func TestAnAgentThatCannotMergeRefuses(t *testing.T) {
	refusal := frames(wire.Failure, wire.Error{Code: string(fault.Unsupported), Message: "unknown op", Remedy: "restart"})
	for name, redact := range map[string][][]byte{"without values": nil, "with values": {[]byte("value")}} {
		nc := &recorded{answer: answer{r: bytes.NewReader(refusal)}}
		c := NewClient(func(context.Context) (net.Conn, error) { return nc, nil })
		if _, err := c.Start(context.Background(), Command{ID: id, Shell: "x", Merge: true, Redact: redact}); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Contains(nc.sent.Bytes(), []byte(`"op":"start_merged"`)) {
			t.Errorf("%s: %q was sent", name, nc.sent.Bytes())
		}
	}
}

// An agent that would ignore the field must not run the command: it does not know the op.
func TestAnAgentThatCannotMaskRefuses(t *testing.T) {
	refusal := frames(wire.Failure, wire.Error{Code: string(fault.Unsupported), Message: "unknown op", Remedy: "restart"})
	for name, redact := range map[string][][]byte{"without values": nil, "with values": {[]byte("value")}} {
		nc := &recorded{answer: answer{r: bytes.NewReader(refusal)}}
		c := NewClient(func(context.Context) (net.Conn, error) { return nc, nil })
		if _, err := c.Start(context.Background(), Command{ID: id, Shell: "x", Redact: redact}); !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy != "restart" {
			t.Errorf("%s: %v", name, err)
		}
		r := wire.NewReader(&nc.sent)
		_, _, _ = r.Next()
		_, b, err := r.Next()
		var req wire.Request
		if err == nil {
			err = wire.Decode(b, &req)
		}
		want := wire.OpStart
		if redact != nil {
			want = wire.OpStartMasked
		}
		if err != nil || req.Op != want || len(req.Start.Redact) != len(redact) {
			t.Errorf("%s: %+v %v", name, req, err)
		}
	}
}
