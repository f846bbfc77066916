// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"strconv"
	"time"

	"sandpit.dev/sandbox"
)

// Lists have up to a hundred thousand entries. These two write what the encoder of package json writes of a
// v1.FileEntry and a v1.FileInfo, in a fifth of the time; a test holds them to it.

func appendEntry(b []byte, name, kind string, size int64) []byte {
	b = appendText(append(b, `{"name":`...), name)
	b = appendText(append(b, `,"type":`...), kind)
	b = strconv.AppendInt(append(b, `,"size":`...), size, 10)
	return append(b, '}')
}

func appendInfo(b []byte, f *sandbox.FileInfo) []byte {
	b = appendText(append(b, `{"name":`...), f.Name)
	b = appendText(append(b, `,"path":`...), f.Path)
	b = appendText(append(b, `,"type":`...), string(f.Type))
	b = strconv.AppendInt(append(b, `,"size":`...), f.Size, 10)
	b = append(append(append(b, `,"mode":"`...), octal(f.Mode)...), `","modified_at":"`...)
	b = f.ModTime.UTC().AppendFormat(b, time.RFC3339Nano)
	b = strconv.AppendInt(append(b, `","uid":`...), int64(f.UID), 10)
	b = strconv.AppendInt(append(b, `,"gid":`...), int64(f.GID), 10)
	for _, t := range [...]struct{ name, text string }{
		{"target", f.Target}, {"owner", f.Owner}, {"group", f.Group}, {"target_type", string(f.TargetType)},
	} {
		if t.text != "" {
			b = appendText(append(append(append(b, `,"`...), t.name...), `":`...), t.text)
		}
	}
	if len(f.Attributes) > 0 {
		if text, err := json.Marshal(f.Attributes); err == nil { // texts have JSON
			b = append(append(b, `,"attributes":`...), text...)
		}
	}
	return append(b, '}')
}

// appendText appends a string of JSON.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // a string has JSON
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
