// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// statusCanceled is the status of a request whose caller went away. Only the log has it.
const statusCanceled = 499

// maxRetry is the longest that is told: budgets are of months.
const maxRetry = 31 * 24 * time.Hour

// Status returns the HTTP status of a code. It is the only such table.
func Status(code fault.Code) int {
	switch code {
	case fault.Malformed:
		return http.StatusBadRequest
	case fault.Invalid:
		return http.StatusUnprocessableEntity
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Denied:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Exists, fault.Conflict, fault.State:
		return http.StatusConflict
	case fault.PreconditionFailed:
		return http.StatusPreconditionFailed
	case fault.Exhausted:
		return http.StatusTooManyRequests
	case fault.Full:
		return http.StatusInsufficientStorage
	case fault.Unsupported:
		return http.StatusNotImplemented
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Timeout:
		return http.StatusGatewayTimeout
	case fault.Canceled:
		return statusCanceled
	}
	return http.StatusInternalServerError
}

// statusError is an error whose status is finer than its code's.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus answers err with a status other than that of its code, where HTTP
// has a finer one (405, 415, 416).
func WithStatus(status int, err error) error { return statusError{err, status} }

// TooLarge returns the error of a body of more than limit bytes.
func TooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the request's body has more than %d bytes", limit).
		WithRemedy("send large files raw, by PUT …/files/{path}; what is larger still must be sent in parts")
}

// Problem returns what a caller may see of err, and the header Retry-After, which may be "". An
// internal error reveals nothing else.
func Problem(err error, requestID string) (p v1.Problem, retryAfter string) {
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = TooLarge(tooBig.Limit)
	}
	e := fault.As(err)
	p = v1.Problem{
		Type: "urn:sandpit:error:" + string(e.Code), Status: Status(e.Code), Detail: e.Message,
		Code: string(e.Code), Reason: e.Reason, Remedy: e.Remedy, RequestID: requestID, Version: e.Version,
	}
	if se, ok := errors.AsType[statusError](err); ok {
		p.Status = se.status
	}
	p.Title = http.StatusText(p.Status)
	if p.Status == statusCanceled {
		p.Title = "Client Closed Request"
	}
	if p.Status == http.StatusInternalServerError {
		p.Type, p.Code, p.Reason, p.Version = "urn:sandpit:error:internal", string(fault.Internal), "", ""
		p.Detail = "internal error"
		p.Remedy = "look for the request's id in the server's log"
		return p, ""
	}
	p.Cause = cause(e)
	if e.Disk != "" {
		p.Cause = string(e.Disk) // a program decides by it
	}
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, v1.ProblemField{Field: f.Name, Message: f.Message})
	}
	if e.Retry > 0 || e.Code == fault.Exhausted || e.Code == fault.Unavailable {
		retryAfter = strconv.Itoa(max(1, int(math.Ceil(min(e.Retry, maxRetry).Seconds()))))
	}
	return p, retryAfter
}

// cause returns the messages of the errors behind e, as far as they are written
// for callers: those of package fault are, all others are for the log.
func cause(e *fault.Error) string {
	var parts []string
	for range 8 {
		inner, ok := errors.AsType[*fault.Error](e.Err)
		if !ok || inner.Code == fault.Internal {
			break
		}
		if inner.Message != e.Message {
			parts = append(parts, inner.Message)
		}
		e = inner
	}
	return strings.Join(parts, ": ")
}

// NotYet answers err, as [Error] does, to a request for whether something is ready. That it is
// not ready is a normal answer, and is not logged as a server error.
func NotYet(w http.ResponseWriter, r *http.Request, err error) {
	if p := passOf(r.Context()); p != nil {
		p.asked = true
	}
	Error(w, r, err)
}

// Error answers err as application/problem+json. The whole error, cause
// included, goes into the request's line in the log. If an answer was begun
// already, the connection is cut instead, so that half of it cannot look whole.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	ErrorAs(w, r, err, v1.ProblemType, func(p v1.Problem) any { return p })
}

// ErrorAs is [Error] for a wire that has errors of its own: the answer is JSON of a media type,
// and holds what body returns for the problem.
func ErrorAs(w http.ResponseWriter, r *http.Request, err error, media string, body func(v1.Problem) any) {
	ErrorText(w, r, err, media, func(p v1.Problem) []byte {
		text, err := json.Marshal(body(p))
		if err != nil {
			return []byte(`{"status":500,"code":"internal"}`) // cannot be: p is plain text and numbers
		}
		return text
	})
}

// ErrorText is ErrorAs for a wire whose errors are no JSON.
func ErrorText(w http.ResponseWriter, r *http.Request, err error, media string, body func(v1.Problem) []byte) {
	if p := passOf(r.Context()); p != nil {
		p.err = err
	}
	if rw, ok := w.(*response); ok && rw.status != 0 {
		panic(http.ErrAbortHandler)
	}
	p, retryAfter := Problem(err, RequestID(r.Context()))
	text := body(p)
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Disposition", "Content-Security-Policy", "Accept-Ranges", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	if p.Version != "" {
		h.Set("Etag", `"`+p.Version+`"`)
	}
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if broken(err) {
		h.Set("Connection", "close")
	}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	if c := Challenge(r, err); c != "" {
		h.Set("WWW-Authenticate", c)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the caller went away: nothing to report
}
