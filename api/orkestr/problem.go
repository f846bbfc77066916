// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Codes for which the SDK has exceptions of their own.
const (
	codeTimeout       = "exec_timeout"
	codeKilled        = "exec_killed"
	codeFull          = "fleet_full_retry" // tried again by the SDK: nothing was made
	codePlan          = "plan_limit"
	codeSnapshots     = "snapshot_cap_reached"
	codeNoInterpreter = "interpreter_unavailable"
	codeNetwork       = "network_policy_blocked"
)

// problem is the body of an error.
type problem struct {
	Detail    string `json:"detail"` // with what to do
	Code      string `json:"code,omitempty"`
	Signal    int    `json:"signal,omitempty"` // that ended a command
	RequestID string `json:"request_id,omitempty"`
}

// codedError is an error with a code of the SDK's.
type codedError struct {
	error
	code   string
	signal syscall.Signal
}

func (e codedError) Unwrap() error { return e.error }

// coded returns err with a code and a status.
func coded(code string, status int, err error) error {
	return guard.WithStatus(status, codedError{error: err, code: code})
}

// answerError answers a request with err.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	guard.ErrorAs(w, r, guard.ByTable(err, guard.Unprocessable), "application/json", func(p v1.Problem) any { return bodyOf(p, err) })
}

func bodyOf(p v1.Problem, err error) problem {
	out := problem{Detail: guard.Text(p), RequestID: p.RequestID}
	f := fault.As(err)
	if e, ok := errors.AsType[codedError](err); ok {
		out.Code, out.Signal = e.code, int(e.signal)
	} else if f.Code == fault.Exhausted && f.Retry == 0 {
		out.Code = codePlan // a quota, which no waiting mends
	} else if f.Code == fault.Denied && len(f.Fields) > 0 && f.Fields[0].Name == "network" {
		out.Code = codeNetwork // wider than the operator allows, whatever the token
	}
	return out
}

// lastFrame is the event that breaks a stream off.
func lastFrame(ctx context.Context, err error) (string, any) {
	p, _ := guard.Problem(err, guard.RequestID(ctx))
	b := bodyOf(p, err)
	return kindError, errorFrame{Kind: kindError, Code: b.Code, Message: b.Detail, Signal: b.Signal}
}
