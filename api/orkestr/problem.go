// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"errors"
	"net/http"
	"strings"
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
)

// problem is the body of an error.
type problem struct {
	Detail     string `json:"detail"` // with what to do
	Code       string `json:"code,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"`
	Signal     int    `json:"signal,omitempty"` // that ended a command
	RequestID  string `json:"request_id,omitempty"`
}

// codedError is an error with a code of the SDK's.
type codedError struct {
	error
	code   string
	signal syscall.Signal
}

func (e codedError) Unwrap() error { return e.error }

// coded gives err a code and a status.
func coded(code string, status int, err error) error {
	return guard.WithStatus(status, codedError{error: err, code: code})
}

// answerError answers a request with err.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	if p, _ := guard.Problem(err, ""); p.Status == guard.Status(fault.As(err).Code) {
		err = guard.WithStatus(status(err), err)
	}
	guard.ErrorAs(w, r, err, "application/json", func(p v1.Problem) any { return bodyOf(p, err) })
}

// status returns the status of an error: the SDK raises a class of its own for 401, 403, 404, 409 and 429.
func status(err error) int {
	switch e := fault.As(err); e.Code {
	case fault.Malformed, fault.Invalid, fault.TooLarge, fault.Unsupported:
		return http.StatusUnprocessableEntity
	case fault.PreconditionFailed:
		return http.StatusConflict
	case fault.Full:
		if e.Disk == fault.SandboxDisk {
			return http.StatusUnprocessableEntity
		}
		return http.StatusServiceUnavailable
	case fault.Unauthenticated, fault.Denied, fault.NotFound, fault.Exists, fault.Conflict, fault.State, fault.Exhausted, fault.Unavailable, fault.Timeout, fault.Canceled, fault.Internal:
		return guard.Status(e.Code)
	}
	return http.StatusInternalServerError
}

func bodyOf(p v1.Problem, err error) problem {
	out := problem{Detail: p.Detail, RequestID: p.RequestID}
	for _, f := range p.Errors {
		if !strings.Contains(out.Detail, f.Message) {
			out.Detail += "; " + f.Field + ": " + f.Message
		}
	}
	if p.Remedy != "" {
		out.Detail += "; " + p.Remedy
	}
	if e, ok := errors.AsType[codedError](err); ok {
		out.Code, out.Signal = e.code, int(e.signal)
	} else if fault.As(err).Code == fault.Exhausted && fault.As(err).Retry == 0 {
		out.Code = codePlan // a quota, which no waiting mends
	}
	return out
}

// lastFrame is the event that breaks a stream off.
func lastFrame(ctx context.Context, err error) (string, any) {
	p, _ := guard.Problem(err, guard.RequestID(ctx))
	b := bodyOf(p, err)
	return kindError, errorFrame{Kind: kindError, Code: b.Code, Message: b.Detail, Signal: b.Signal}
}

// unsupported returns the error about a field that asks for what is not here.
func unsupported(field, why string) *fault.Error {
	e := fault.As(fault.InvalidField(field, "%s", why))
	e.Code = fault.Unsupported
	return e
}
