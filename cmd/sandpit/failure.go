// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/fault"
)

// Exit statuses of our own.
const (
	statusFailed = 1
	statusMisuse = 2
	statusOwn    = 125 // of run, exec and shell, whose other statuses are the command's
)

// exit is an error that sets the status of this process. Without err there is
// nothing to say.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// misuse is a mistake in the command line.
func misuse(c *cobra.Command, format string, args ...any) error {
	return &exit{statusMisuse, fault.New(fault.Invalid, format, args...).WithRemedy("see: %s --help", c.CommandPath())}
}

// own makes failures of ours distinct from the status of a command that is run.
func own(err error) error {
	if _, ok := errors.AsType[*exit](err); ok || err == nil {
		return err
	}
	return &exit{statusOwn, err}
}

// passing returns the status of a remote command as our own.
func passing(status int) error {
	if status == 0 {
		return nil
	}
	return &exit{status: status}
}

// report says what went wrong, the cause and then the next step, and gives the
// status to exit with.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	status := statusFailed
	if e, ok := errors.AsType[*exit](err); ok {
		status = e.status
		if e.err == nil {
			return status
		}
		err = e.err
	}
	a.say(err)
	return status
}

// choose has errors written as c's flag -o asks.
func (a *app) choose(c *cobra.Command) {
	f := c.Flags().Lookup("output")
	a.json = f != nil && f.Changed && f.Value.String() == string(asJSON)
}

// failure is an error as programs read it.
type failure struct {
	Code    fault.Code    `json:"code"`
	Message string        `json:"message"`
	Remedy  string        `json:"remedy,omitempty"`
	Fields  []fault.Field `json:"fields,omitempty"`
	Cause   string        `json:"cause,omitempty"` // with the code full: the disk
}

// say writes an error to standard error, without ending anything.
func (a *app) say(err error) {
	if a.json {
		f := failure{Code: fault.Of(err), Message: printable(whole(err)), Remedy: printable(a.remedy(err))}
		if e, ok := errors.AsType[*fault.Error](err); ok {
			f.Fields, f.Cause = e.Fields, string(e.Disk)
		}
		_ = json.NewEncoder(a.stderr).Encode(map[string]failure{"error": f})
		return
	}
	fmt.Fprintln(a.stderr, a.paint(red, "sandpit:")+" "+printable(whole(err)))
	if next := a.remedy(err); next != "" {
		fmt.Fprintln(a.stderr, a.paint(cyan, "→")+" "+printable(next))
	}
}

// paint is what a terminal is told before text of a colour.
type paint string

const (
	red   paint = "\x1b[31m"
	cyan  paint = "\x1b[36m"
	plain paint = "\x1b[0m"
)

// paint returns text for standard error in a colour, if a person looks at it there and nothing
// forbids it: NO_COLOR, CLICOLOR=0, or a terminal that has none.
func (a *app) paint(p paint, text string) string {
	if _, tty := terminal(a.stderr); !tty || a.getenv("NO_COLOR") != "" || a.getenv("CLICOLOR") == "0" || a.getenv("TERM") == "dumb" {
		return text
	}
	return string(p) + text + string(plain)
}

// warn writes a line to standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.stderr, "sandpit: "+printable(fmt.Sprintf(format, args...)))
}

// whole is an error with its cause, which is said once.
func whole(err error) string {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	if e.Err != nil && strings.Contains(e.Message, e.Err.Error()) {
		return e.Message
	}
	return e.Error()
}

// printable makes one line of text that steers no terminal: names and messages
// may come out of a sandbox.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
