// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Versions are those of the tools inside an image, by their names.
type Versions map[string]string

// MarshalJSON returns what a map of texts is as JSON. Each answer about a sandbox has one, and by itself
// encoding/json allocates twice for each name.
func (v Versions) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	names := slices.AppendSeq(make([]string, 0, len(v)), maps.Keys(v))
	slices.Sort(names)
	b := append(make([]byte, 0, 32*len(v)+2), '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendText(b, v[name])
	}
	return append(b, '}'), nil
}

// appendText appends a text as JSON.
func appendText(b []byte, text string) []byte {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		quoted, _ := json.Marshal(text) // a text is never refused
		return append(b, quoted...)
	}
	return append(append(append(b, '"'), text...), '"')
}
