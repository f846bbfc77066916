// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"strings"

	"sandpit.dev/fault"
)

// detachKeys leave an attached process to itself, unless others are asked for:
// Ctrl-P, then Ctrl-Q.
const detachKeys = "\x10\x11"

// Detacher looks for the detach keys in what is typed. Keys that may be the first of
// them are held back until it is known what follows. The zero value looks for the
// default ones.
type Detacher struct {
	Keys []byte // nil: the default; empty: none
	held []byte // a beginning of keys
}

// Filter returns what is the process's, and whether the keys were typed.
func (d *Detacher) Filter(data []byte) ([]byte, bool) {
	if d.Keys == nil {
		d.Keys = []byte(detachKeys)
	}
	if len(d.Keys) == 0 {
		return data, false
	}
	given := make([]byte, 0, len(d.held)+len(data))
	for _, b := range data {
		d.held = append(d.held, b)
		for !bytes.HasPrefix(d.Keys, d.held) {
			given, d.held = append(given, d.held[0]), d.held[1:]
		}
		if len(d.held) == len(d.Keys) {
			d.held = nil
			return given, true
		}
	}
	return given, false
}

// ParseDetachKeys reads "ctrl-p,ctrl-q", or single characters; empty: none.
func ParseDetachKeys(text string) ([]byte, error) {
	keys := []byte{}
	if text == "" {
		return keys, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		c, ctrl := strings.CutPrefix(strings.ToLower(name), "ctrl-")
		switch {
		case !ctrl && len(name) == 1 && name[0] < 0x7f:
			keys = append(keys, name[0])
		case ctrl && len(c) == 1 && (c[0] >= 'a' && c[0] <= 'z' || strings.ContainsAny(c, `@[\]^_`)):
			keys = append(keys, c[0]&0x1f)
		default:
			return nil, fault.New(fault.Invalid, "--detach-keys: %.40q is not a key", name).
				WithRemedy("give characters and ctrl-a to ctrl-z with commas between them: ctrl-p,ctrl-q")
		}
	}
	return keys, nil
}
