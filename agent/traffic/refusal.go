// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// refusal is a fault on its way.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// maxWords bounds each of its texts, in bytes.
const maxWords = 500

func (r refusal) append(b []byte) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings are always JSON
	}
	return append(b, text...)
}

func refusalOf(err error) refusal {
	f := fault.As(err)
	r := refusal{Code: string(f.Code), Message: words(f.Message), Remedy: words(f.Remedy)}
	if f.Code == fault.Internal && f.Err != nil {
		r.Message = words(f.Error())
	}
	return r
}

// readRefusal reads one, of whose words none is the server's own.
func readRefusal(b []byte) error {
	var r refusal
	if err := json.Unmarshal(b, &r); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the sandbox's agent says in no words why there is no traffic")
	}
	return r.fault()
}

func (r refusal) fault() error {
	code := fault.Code(r.Code)
	if !slices.Contains([]fault.Code{fault.Conflict, fault.Unsupported, fault.Unavailable, fault.Exhausted}, code) {
		code = fault.Unavailable
	}
	f := fault.New(code, "%s", words(r.Message))
	f.Remedy = words(r.Remedy)
	return f
}

// words makes a text fit to be shown.
func words(s string) string {
	s = s[:min(len(s), maxWords)]
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, s)
}
