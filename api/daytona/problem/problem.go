// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package problem says errors as Daytona's clients read them, on both planes.
package problem

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// status returns the status of an error. Clients raise a class of their own for these alone.
func status(err error) int {
	e := fault.As(err)
	switch e.Code {
	case fault.Malformed, fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Denied:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Exists, fault.Conflict, fault.State, fault.PreconditionFailed:
		return http.StatusConflict
	case fault.TooLarge, fault.Unsupported:
		return http.StatusUnprocessableEntity
	case fault.Exhausted:
		return http.StatusTooManyRequests
	case fault.Full:
		if e.Disk == fault.SandboxDisk {
			return http.StatusUnprocessableEntity
		}
		return http.StatusServiceUnavailable
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Timeout:
		return http.StatusGatewayTimeout
	case fault.Canceled, fault.Internal:
	}
	return guard.Status(e.Code)
}

// Below is where the toolbox is, whose errors have another source.
const Below = "/daytona/toolbox/"

// withStatus gives err its status here; one that has a finer one than its code's keeps it.
func withStatus(err error) error {
	if p, _ := guard.Problem(err, ""); p.Status == guard.Status(fault.As(err).Code) {
		return guard.WithStatus(status(err), err)
	}
	return err
}

// Of returns what a client reads of err, which is about a request.
func Of(r *http.Request, err error) wire.Problem {
	p, _ := guard.Problem(withStatus(err), guard.RequestID(r.Context()))
	return body(r, p, fault.ReasonOf(err))
}

// Answer answers a request with err.
func Answer(w http.ResponseWriter, r *http.Request, err error) {
	guard.ErrorAs(w, r, withStatus(err), "application/json", func(p v1.Problem) any { return body(r, p, fault.ReasonOf(err)) })
}

func body(r *http.Request, p v1.Problem, reason string) wire.Problem {
	out := wire.Problem{
		StatusCode: p.Status, Message: p.Detail, Error: p.Title, Code: strings.ToUpper(p.Code), Source: wire.SourceAPI,
		Path: sandbox.Clip(r.URL.Path, maxPath), Timestamp: time.Now().UTC(), Method: r.Method,
	}
	if strings.HasPrefix(r.URL.Path, Below) {
		out.Source = wire.SourceDaemon
	}
	if known(reason) {
		out.Code = reason
	}
	if p.Remedy != "" {
		out.Message += "; " + p.Remedy
	}
	return out
}

// maxPath is how much of a path an error repeats, in bytes.
const maxPath = 1000

// known reports whether clients have a class of errors of their own for a code.
func known(code string) bool {
	return slices.Contains([]string{
		wire.CodeFileNotFound, wire.CodeFileAccessDenied, wire.CodeInvalidFilePath, wire.CodeFileReadFailed, wire.CodeExecutionTimeout, wire.CodeProcessNotFound,
		wire.CodeSessionEnded, wire.CodeCommandCompleted, wire.CodeGitAuthFailed, wire.CodeGitRepoNotFound, wire.CodeGitBranchNotFound, wire.CodeGitBranchExists,
		wire.CodeGitPushRejected, wire.CodeGitDirty, wire.CodeGitConflict, wire.CodeGitTransport, wire.CodeGitRemoteRejected, wire.CodeLSPNotInitialized,
	}, code)
}
