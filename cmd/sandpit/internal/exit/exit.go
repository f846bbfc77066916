// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package exit has the errors that set the status of this program, and what those statuses are.
package exit

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
)

// Exit statuses of our own.
const (
	StatusFailed = 1
	statusMisuse = 2
	statusOwn    = 125 // of run, exec and shell, whose other statuses are the command's
)

// Error is an error that sets the status of this process. Without err there is
// nothing to say.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Misuse is a mistake in the command line.
func Misuse(c *cobra.Command, format string, args ...any) error {
	return &Error{statusMisuse, fault.New(fault.Invalid, format, args...).WithRemedy("see: %s --help", c.CommandPath())}
}

// Own makes failures of ours distinct from the status of a command that is run.
func Own(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return &Error{statusOwn, err}
}

// Passing returns the status of a remote command as our own.
func Passing(status int) error {
	if status == 0 {
		return nil
	}
	return &Error{Status: status}
}
