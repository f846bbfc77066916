// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members stay in their order.
type object []member

type member struct {
	key   string
	value any
}

// with is the object and one more member, unless that has nothing in it.
func (o object) with(key string, value any) object {
	if in, ok := value.(object); ok && len(in) == 0 {
		return o
	}
	return append(o, member{key, value})
}

func (o object) without(key string) object {
	var out object
	for _, m := range o {
		if m.key != key {
			out = append(out, m)
		}
	}
	return out
}

// get returns a member's text, or "" if it is not text.
func (o object) get(key string) string {
	for _, m := range o {
		if m.key == key {
			s, _ := m.value.(string)
			return s
		}
	}
	return ""
}

// MarshalJSON writes it.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(compactJSON(m.key))
		b.WriteByte(':')
		b.Write(compactJSON(m.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// compactJSON is a value of ours, all of which can be encoded, with '<', '>' and '&' as they are.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// prettyJSON is the same over several lines, all but the first of which begin with indent.
func prettyJSON(v any, indent, unit string) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, compactJSON(v), indent, unit)
	return b.Bytes()
}
