// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package check checks what requests ask for, in the words of the caller. It knows the bounds of
// a request's fields, no verb and no sandbox.
package check

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// MaxPath is the most bytes of a path.
const MaxPath = 4095

// Fields collects every wrong field of a request, so that one answer names them all. The zero
// value has none. It is not safe for concurrent use.
type Fields struct{ wrong []fault.Field }

// Bad adds a field that is wrong, and why.
func (k *Fields) Bad(field, format string, args ...any) {
	k.Add(fault.InvalidField(field, format, args...))
}

// Add adds the fields of an Invalid error; nil has none.
func (k *Fields) Add(err error) {
	if err != nil {
		k.wrong = append(k.wrong, fault.As(err).Fields...)
	}
}

// Take adds the fields of an Invalid error, and returns any other.
func (k *Fields) Take(err error) error {
	if err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	k.Add(err)
	return nil
}

// Err returns fault.Invalid with every wrong field, nil where there is none.
func (k *Fields) Err() error {
	if len(k.wrong) == 0 {
		return nil
	}
	return fault.InvalidFields(k.wrong...)
}

// Metadata checks labels.
func (k *Fields) Metadata(field string, m map[string]string) {
	if len(m) > MaxMetadata {
		k.Bad(field, "has %d labels, more than %d", len(m), MaxMetadata)
		return
	}
	for n, v := range m {
		switch {
		case n == "" || len(n) > MaxMetadataKey || !Plain(n):
			k.Bad(field, "the label %q has to have 1 to %d bytes of printable text", sandbox.Clip(n, 80), MaxMetadataKey)
		case len(v) > MaxMetadataValue:
			k.Bad(field, "the value of %q has %d bytes, more than %d", n, len(v), MaxMetadataValue)
		case !Plain(v):
			k.Bad(field, "the value of %q holds what is not printable text", n)
		}
	}
}

// Bounds of labels.
const (
	MaxMetadata      = 64
	MaxMetadataKey   = 63  // bytes
	MaxMetadataValue = 256 // bytes
)

// Clock checks a timeout of a sandbox: never (zero), or sandbox.MinClock to sandbox.MaxClock.
func (k *Fields) Clock(field string, d time.Duration) {
	if d != 0 && (d < sandbox.MinClock || d > sandbox.MaxClock) {
		k.Bad(field, "%s is outside %s to %s seconds (0 means never)",
			Seconds(d), Seconds(sandbox.MinClock), Seconds(sandbox.MaxClock))
	}
}

// OnIdle checks what is to become of an idle sandbox; nil is fine.
func (k *Fields) OnIdle(a *sandbox.IdleAction) {
	if a != nil && *a != sandbox.IdleStop && *a != sandbox.IdlePause {
		k.Bad("idle_action", "%q is neither %q nor %q", sandbox.Clip(string(*a), 40), sandbox.IdleStop, sandbox.IdlePause)
	}
}

// OnExpiry checks what is to become of a sandbox when it expires; nil is fine.
func (k *Fields) OnExpiry(a *sandbox.ExpiryAction) {
	if a != nil && *a != sandbox.ExpiryDelete && !a.Spends() {
		k.Bad("on_expiry", "%q is neither %q, %q nor %q", sandbox.Clip(string(*a), 40), sandbox.ExpiryDelete, sandbox.ExpiryStop, sandbox.ExpiryPause)
	}
}

// Checkpoints checks when snapshots are to be taken by themselves; nil is fine.
func (k *Fields) Checkpoints(c *sandbox.Checkpoints) {
	if c != nil && *c != sandbox.CheckpointsOff && *c != sandbox.CheckpointsCommand {
		k.Bad("checkpoints", "%q is neither %q nor %q", sandbox.Clip(string(*c), 40), sandbox.CheckpointsOff, sandbox.CheckpointsCommand)
	}
}

// Limits checks the limits of a sandbox, which has the most that one may have.
func (k *Fields) Limits(l, most sandbox.Limits) { k.Add(l.CheckUpTo(most)) }

// Key checks the key of a sandbox.
func (k *Fields) Key(key string) { k.Add(sandbox.CheckKey("key", key)) }

// Path checks a path inside.
func (k *Fields) Path(field, p string) {
	switch {
	case p == "":
		k.Bad(field, "is empty")
	case len(p) > MaxPath:
		k.Bad(field, "has %d bytes, more than %d (it starts with %q)", len(p), MaxPath, sandbox.Clip(p, 40))
	case strings.IndexByte(p, 0) >= 0:
		k.Bad(field, "holds a NUL byte")
	}
}

// Port checks the number of a port.
func (k *Fields) Port(field string, port int) {
	if port < 1 || port > sandbox.MaxPort {
		k.Bad(field, "%d is outside 1 to %d", port, sandbox.MaxPort)
	}
}

// Timeout checks a time limit or a wait.
func (k *Fields) Timeout(field string, d, most time.Duration) {
	if d < 0 || d > most {
		k.Bad(field, "%s is outside 0 to %s seconds", Seconds(d), Seconds(most))
	}
}

// Bytes checks a bound of bytes to keep.
func (k *Fields) Bytes(field string, n, most int64) {
	if n < 0 || n > most {
		k.Bad(field, "%d is outside 0 to %d bytes", n, most)
	}
}

// Plain reports whether s is UTF-8 without control characters.
func Plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Seconds returns a duration as the wire writes it.
func Seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
