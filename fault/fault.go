// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package fault is the one error type of sandpit.
//
// An error gets its [Code] where the fact is known: a driver knows that the
// kernel lacks a feature, the store knows that a row is missing. Everything
// above passes it on with %w. A coat (REST, MCP, the CLI) turns the code into
// what its clients expect, once, in a table that a test holds exhaustive.
//
// Message and Remedy are written for the caller and are safe to show: they
// name the value that was sent, the bound that it broke and the next step. Err
// is the cause; it goes to the log and never to a caller. An error without a
// code is [Internal]: the caller reads "internal error" and a request id.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code classifies an error by what the caller can do about it.
type Code string

const (
	// Malformed: the request could not be read (broken JSON, wrong content type).
	Malformed Code = "malformed"
	// Invalid: the request was read, and a field of it is wrong; see [Error.Fields].
	Invalid Code = "invalid"
	// TooLarge: the request, or what it would produce, is over a size bound.
	TooLarge Code = "too_large"
	// Unauthenticated: the request has no valid credential.
	Unauthenticated Code = "unauthenticated"
	// Denied: the credential is valid and does not allow this.
	Denied Code = "denied"
	// NotFound: the thing does not exist, or the caller may not see it.
	NotFound Code = "not_found"
	// Exists: the name is taken.
	Exists Code = "exists"
	// Conflict: the thing has changed since it was read; read it again and retry.
	Conflict Code = "conflict"
	// PreconditionFailed: the thing is not as the request's condition says, and was left as it was; see [Error.Version].
	PreconditionFailed Code = "precondition_failed"
	// State: the thing is not in a state that allows this.
	State Code = "state"
	// Exhausted: a bound of how many or how often is reached; it may be free again by itself.
	Exhausted Code = "exhausted"
	// Full: a disk is full, see [Error.Disk]; a retry does not help before something is deleted.
	Full Code = "full"
	// Unsupported: this runtime, on this host, cannot do it.
	Unsupported Code = "unsupported"
	// Unavailable: a part does not answer; a retry may help.
	Unavailable Code = "unavailable"
	// Timeout: the deadline passed.
	Timeout Code = "timeout"
	// Canceled: the caller went away.
	Canceled Code = "canceled"
	// Internal: a bug.
	Internal Code = "internal"
)

// Codes lists every code, for the tables that must be exhaustive.
func Codes() []Code {
	return []Code{
		Malformed, Invalid, TooLarge, Unauthenticated, Denied, NotFound, Exists, Conflict,
		PreconditionFailed, State, Exhausted, Full, Unsupported, Unavailable, Timeout, Canceled, Internal,
	}
}

// Disk names a disk that can be full.
type Disk string

const (
	// SandboxDisk is the disk of one sandbox: its own limit is reached.
	SandboxDisk Disk = "sandbox"
	// StoreDisk is what the disks of all sandboxes share.
	StoreDisk Disk = "store"
	// HostDisk is the host's file system, on which the data directory lies.
	HostDisk Disk = "host"
	// RecordsDisk is the disk with the server's records.
	RecordsDisk Disk = "records"
)

// Disks returns every disk that can be full.
func Disks() []Disk { return []Disk{SandboxDisk, StoreDisk, HostDisk, RecordsDisk} }

// Field names one wrong field of a request.
type Field struct {
	// Name is the field's path in the request as the caller wrote it ("limits.memory_mb").
	Name string `json:"name"`
	// Message says what is wrong with it: the value sent and the bound it broke.
	Message string `json:"message"`
}

// Error is an error with a code and a message for the caller.
type Error struct {
	Code    Code
	Message string        // for the caller; safe to show
	Remedy  string        // the caller's next step; may be empty
	Fields  []Field       // only with Invalid
	Disk    Disk          // the disk that is full; only with Full
	Reason  string        // a word that a program decides by where the code is not enough; documented where it is set
	Version string        // what the thing has now, empty where there is none; only with PreconditionFailed
	Scope   string        // what the credential lacks; only with Denied, and only where another scope would allow it
	Inside  bool          // what is used up is one sandbox's, and is free again when all in it ends; only with Exhausted
	Busy    bool          // too much is begun at once, and nothing need be freed; only with Exhausted
	Retry   time.Duration // when a retry may help; zero where unknown
	Err     error         // the cause; for the log only
}

// New makes an error. The message is formatted as by [fmt.Sprintf].
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error with a cause that only the log will see.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// InvalidField makes an Invalid error about one field.
func InvalidField(name, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return &Error{Code: Invalid, Message: name + ": " + msg, Fields: []Field{{Name: name, Message: msg}}}
}

// InvalidFields returns an Invalid error about several fields, with the message of each.
func InvalidFields(fields ...Field) *Error {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name + ": " + f.Message
	}
	return &Error{Code: Invalid, Message: strings.Join(all, "; "), Fields: fields}
}

// NoSpace returns a Full error of a disk, with a cause that only the log will see; err may be nil.
func NoSpace(disk Disk, err error, format string, args ...any) *Error {
	e := Wrap(Full, err, format, args...)
	e.Disk = disk
	return e
}

// WithRemedy sets the next step and returns e.
func (e *Error) WithRemedy(format string, args ...any) *Error {
	e.Remedy = fmt.Sprintf(format, args...)
	return e
}

// WithReason sets the reason and returns e.
func (e *Error) WithReason(reason string) *Error {
	e.Reason = reason
	return e
}

// ReasonOf returns the reason of the outermost [Error] in err's chain, "" where it has none.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// Error is the whole text, cause included: for logs, not for callers.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Of returns the code of err: "" for nil, the code of the outermost [Error] in
// its chain, Canceled or Timeout for a context's error, and else Internal.
func Of(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}

// Is reports whether err has the code.
func Is(err error, code Code) bool { return err != nil && Of(err) == code }

// As returns err as an Error that is safe to show: err's own outermost [Error], or one made from
// its code with a message that reveals nothing internal.
func As(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch Of(err) {
	case Canceled:
		return Wrap(Canceled, err, "the request was canceled")
	case Timeout:
		return Wrap(Timeout, err, "the deadline passed")
	}
	return Wrap(Internal, err, "internal error")
}
