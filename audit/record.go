// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/sandbox"
)

// Outcome says how what a record tells of went.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"  // also a command with an exit code that is not 0
	Denied  Outcome = "denied"  // by a token, a scope, a policy or a quota
	Running Outcome = "running" // it has begun, and goes on; another record tells its end
)

// Types of records that are of no event. All others are those of package sandbox.
const (
	Call           sandbox.EventType = "call"          // of REST
	Tool           sandbox.EventType = "tool"          // of MCP
	SignIn         sandbox.EventType = "signin"        // a token that is not valid
	Altered        sandbox.EventType = "audit.altered" // rows before it were changed by something else; Detail says which
	Lost           sandbox.EventType = "audit.gap"     // Bytes says how many records were lost, and Detail why
	Up             sandbox.EventType = "server.started"
	TokenCreated   sandbox.EventType = "token.created" // Detail has its name, id and scopes, as of the next two
	TokenRotated   sandbox.EventType = "token.rotated"
	TokenDeleted   sandbox.EventType = "token.deleted"
	ProjectCreated sandbox.EventType = "project.created" // Detail has its name and quotas, as of the next
	ProjectChanged sandbox.EventType = "project.changed"
	ProjectDeleted sandbox.EventType = "project.deleted"
	SettingChanged sandbox.EventType = "setting.changed" // Detail has its name and value
	PoolChanged    sandbox.EventType = "pool.changed"
	Down           sandbox.EventType = "server.stopped" // missing: the server was killed
)

// Record is what happened, as the log has it. Values of secrets are in none of its fields.
type Record struct {
	Writer string    `json:"writer"` // whose chain it is in
	Seq    int64     `json:"seq"`    // its number there, from 1, without gaps
	At     time.Time `json:"at"`     // in UTC, to the microsecond

	Type    sandbox.EventType `json:"type"`
	Outcome Outcome           `json:"outcome"`
	Project string            `json:"project,omitempty"`
	Sandbox sandbox.ID        `json:"sandbox,omitempty"`

	Token   string `json:"token,omitempty"`   // the id of it; empty: the server's own admin token
	Actor   string `json:"actor,omitempty"`   // its name, or "system"
	Via     string `json:"via,omitempty"`     // "rest", "mcp", "system"
	Address string `json:"address,omitempty"` // the peer of the connection
	Request string `json:"request_id,omitempty"`
	Call    string `json:"call,omitempty"` // the operation, or the tool
	Path    string `json:"path,omitempty"` // of a request, or of a file

	Status int    `json:"status,omitempty"` // of HTTP
	Code   string `json:"code,omitempty"`   // of an error
	Detail string `json:"detail,omitempty"`

	Event    int64                `json:"event,omitempty"` // the Seq of the event that it is of
	Process  string               `json:"process_id,omitempty"`
	Context  string               `json:"context_id,omitempty"`
	Language string               `json:"language,omitempty"`
	Labels   map[string]string    `json:"labels,omitempty"` // of a process
	Command  string               `json:"command,omitempty"`
	User     string               `json:"user,omitempty"`
	Cwd      string               `json:"cwd,omitempty"`
	Exit     *int                 `json:"exit_code,omitempty"`
	Signal   string               `json:"signal,omitempty"`
	Cause    sandbox.Cause        `json:"cause,omitempty"`
	Millis   float64              `json:"duration_ms,omitempty"`
	Stdout   *Output              `json:"stdout,omitempty"`
	Stderr   *Output              `json:"stderr,omitempty"`
	Changes  []sandbox.FileChange `json:"files_changed,omitempty"`
	Changed  int                  `json:"files_changed_total,omitempty"`
	To       string               `json:"to,omitempty"` // of a move
	Bytes    int64                `json:"bytes,omitempty"`
}

// Output is what a command wrote to a stream. First and Last are its ends, as text: bytes that are not UTF-8 are replaced.
type Output struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // of all of it, in hex
	First  string `json:"first,omitempty"`
	Last   string `json:"last,omitempty"` // of what First leaves out
}

// MaxBody bounds the body of a record, in bytes. Of one that would be longer the changed files and the output are left out.
const (
	MaxBody  = 64 << 10
	maxShort = 1024 // of a text in one that would be longer
)

// OutputOf returns an output with at most keep bytes of each end.
func OutputOf(total int64, e *excerpt.Excerpt, keep int) *Output {
	if total == 0 && e == nil {
		return nil
	}
	o := &Output{Bytes: total}
	if e == nil {
		return o
	}
	o.Bytes = e.Bytes
	o.SHA256 = hexOf(e.SHA256)
	first, last := e.First, e.Last
	if len(first)+len(last) > 2*keep {
		rest := append(first[min(keep, len(first)):len(first):len(first)], last...)
		first, last = first[:min(keep, len(first))], rest[max(0, len(rest)-keep):]
	}
	o.First, o.Last = text(first), text(last)
	return o
}

// text returns bytes as text, without halves of characters where they were cut.
func text(b []byte) string {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(b); r != utf8.RuneError || n != 1 || len(b) == 0 || b[len(b)-1] < utf8.RuneSelf {
			break
		}
		b = b[:len(b)-1]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// Encode returns the body of a record, within [MaxBody].
func (r *Record) Encode() ([]byte, error) {
	b, err := encode(r)
	if err == nil && len(b) > MaxBody {
		short := *r
		short.Changes = nil
		for _, o := range []**Output{&short.Stdout, &short.Stderr} {
			if *o != nil {
				*o = &Output{Bytes: (*o).Bytes, SHA256: (*o).SHA256}
			}
		}
		for _, s := range []*string{&short.Path, &short.To, &short.Cwd, &short.Command, &short.Detail} {
			*s = sandbox.Clip(*s, maxShort)
		}
		b, err = encode(&short)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a record of the audit log cannot be encoded")
	}
	return b, nil
}

// encode returns v as JSON in which only what must be is escaped, so that text is found as it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// Escape returns text as the body of a record has it.
func Escape(text string) string {
	b, err := encode(text)
	if err != nil {
		return text // a string always encodes
	}
	return string(b[1 : len(b)-1])
}

// Decode reads the body of a record.
func Decode(body []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fault.Wrap(fault.Malformed, err, "a record of the audit log cannot be read: %v", err)
	}
	return r, nil
}
