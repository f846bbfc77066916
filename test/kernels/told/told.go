// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package told is what the program inside a virtual machine tells the one outside, over
// the console: a line for each check. Both halves share it and nothing else.
package told

import (
	"bytes"
	"encoding/json"
)

// Names of results that are no checks.
const (
	Begin = "begin" // the machine has booted
	End   = "end"   // all that was asked for was checked
)

// Agent is the file of the agent's program beside the one inside, for tests that would
// build it: there is no Go in a machine.
const Agent = "sandpit-agent"

// maxDetail bounds what one result says.
const maxDetail = 6000

// Result is what came of one check.
type Result struct {
	Check   string  `json:"check"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"` // what was found, or what is wrong
}

var mark = []byte("@@kernels ")

// Line is the result as a line of the console.
func (r Result) Line() []byte {
	if n := len(r.Detail); n > maxDetail {
		r.Detail = "…" + r.Detail[n-maxDetail:] // the end says what went wrong
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil // cannot be: text and numbers
	}
	// A line break before it, too: the kernel may have begun a line.
	return append(append(append([]byte("\n"), mark...), b...), '\n')
}

// Read finds the result in a line of the console, if there is one.
func Read(line []byte) (r Result, ok bool) {
	i := bytes.Index(line, mark)
	if i < 0 {
		return r, false
	}
	return r, json.Unmarshal(line[i+len(mark):], &r) == nil
}

// Plan is what is to be checked.
type Plan struct {
	Checks []string `json:"checks"`
	Tests  []Test   `json:"tests"`
}

// Test is a compiled test binary, a check by its name.
type Test struct {
	Name    string `json:"name"`
	Run     string `json:"run"`     // which tests, as go test -run has it
	Minutes int    `json:"minutes"` // that it may take
}
