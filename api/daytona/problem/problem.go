// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package problem writes errors in the form that Daytona's clients read, of the control plane and the toolbox.
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

// status returns the status of an error. Clients raise a class of their own for few.
func status(err error) int {
	if code := fault.As(err).Code; code == fault.Malformed || code == fault.Invalid {
		return http.StatusBadRequest
	}
	return guard.Unprocessable(err)
}

// Below is where the toolbox is, whose errors have another source.
const Below = "/daytona/toolbox/"

// Of returns what a client reads of err, which is about a request.
func Of(r *http.Request, err error) wire.Problem {
	p, _ := guard.Problem(guard.ByTable(err, status), guard.RequestID(r.Context()))
	return body(r, p, fault.ReasonOf(err))
}

// Answer answers a request with err.
func Answer(w http.ResponseWriter, r *http.Request, err error) {
	guard.ErrorAs(w, r, guard.ByTable(err, status), "application/json", func(p v1.Problem) any { return body(r, p, fault.ReasonOf(err)) })
}

func body(r *http.Request, p v1.Problem, reason string) wire.Problem {
	out := wire.Problem{
		StatusCode: p.Status, Message: guard.Text(p), Error: p.Title, Code: strings.ToUpper(p.Code), Source: wire.SourceAPI,
		Path: sandbox.Clip(r.URL.Path, maxPath), Timestamp: time.Now().UTC(), Method: r.Method,
	}
	if strings.HasPrefix(r.URL.Path, Below) {
		out.Source = wire.SourceDaemon
	}
	if known(reason) {
		out.Code = reason
	}
	if begin := phrase(p.Code, reason); begin != "" {
		out.Message = begin + ": " + out.Message
	}
	return out
}

// phrase returns the phrase that frameworks look for in the message of an error, since some do not look at its class; "" if there is none.
func phrase(code, reason string) string {
	switch {
	case reason == sandbox.ReasonNoSandbox:
		return "sandbox not found"
	case code == string(fault.Unauthenticated):
		return "unauthorized"
	case code == string(fault.Exhausted):
		return "limit exceeded"
	}
	return ""
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
