// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Bounds of the values that are also looked for in base64: a few bytes are found
// in any image, and a long text is broken into lines.
const (
	minEncoded = 8
	maxEncoded = 1 << 10
)

// Bounds of a form that a value is looked for in.
const (
	minForm   = 4 // bytes
	maxGrowth = 2 // times the value's length
)

// appendForms appends what a value looks like in text.
func appendForms(all [][]byte, v []byte) [][]byte {
	if len(v) == 0 {
		return all
	}
	all = append(all, v)
	add := func(form []byte) {
		if len(form) >= minForm && len(form) <= maxGrowth*len(v) && !bytes.Equal(form, v) {
			all = append(all, form)
		}
	}
	trimmed := bytes.TrimRight(v, "\r\n")
	add(trimmed)
	add(bytes.ReplaceAll(v, []byte("\n"), []byte("\r\n")))
	add(bytes.ReplaceAll(trimmed, []byte("\n"), []byte("\r\n")))
	add(quoted(v))
	add(quoted(trimmed))
	if len(v) < minEncoded || len(v) > maxEncoded {
		return all
	}
	for before := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(encoded(e, trimmed, before))
		}
	}
	return all
}

// quoted is v within quotes, without them.
func quoted(v []byte) []byte {
	if !utf8.Valid(v) { // JSON would change it
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(string(v)) != nil {
		return nil
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte(`"`)), []byte(`"`))
}

// encoded is v in base64 behind a number of other bytes: the characters that say
// nothing of those, nor of what follows.
func encoded(e *base64.Encoding, v []byte, before int) []byte {
	text := []byte(e.EncodeToString(append(make([]byte, before, before+len(v)), v...)))
	first, end := (8*before+5)/6, 8*(before+len(v))/6
	return text[first:end]
}
