// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
)

// Report says what went wrong, the cause and then the next step, and gives the
// status to exit with.
func (a *App) Report(err error) int {
	if err == nil {
		return 0
	}
	status := exit.StatusFailed
	if e, ok := errors.AsType[*exit.Error](err); ok {
		status = e.Status
		if e.Err == nil {
			return status
		}
		err = e.Err
	}
	a.Say(err)
	return status
}

// Choose has errors written as c's flag -o asks, with the names of its flags.
func (a *App) Choose(c *cobra.Command) {
	a.Command = c
	f := c.Flags().Lookup("output")
	a.json = f != nil && f.Changed && f.Value.String() == string(output.AsJSON)
}

// failure is an error as programs read it.
type failure struct {
	Code    fault.Code    `json:"code"`
	Reason  string        `json:"reason,omitempty"` // where the code is not enough
	Message string        `json:"message"`
	Remedy  string        `json:"remedy,omitempty"`
	Fields  []fault.Field `json:"fields,omitempty"`
	Cause   string        `json:"cause,omitempty"` // with the code full: the disk
}

// Say writes an error to standard error, without ending anything.
func (a *App) Say(err error) {
	if a.json {
		f := failure{Code: fault.Of(err), Reason: fault.ReasonOf(err), Message: output.Printable(output.Whole(err)), Remedy: output.Printable(a.remedy(err))}
		if e, ok := errors.AsType[*fault.Error](err); ok {
			f.Fields, f.Cause = e.Fields, string(e.Disk)
		}
		_ = json.NewEncoder(a.Stderr).Encode(map[string]failure{"error": f})
		return
	}
	fmt.Fprintln(a.Stderr, a.paint(red, "sandpit:")+" "+output.Printable(inFlags(a.Command, output.Whole(err))))
	if next := a.remedy(err); next != "" {
		fmt.Fprintln(a.Stderr, a.paint(cyan, "→")+" "+output.Printable(next))
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
func (a *App) paint(p paint, text string) string {
	if _, tty := terminal.Of(a.Stderr); !tty || a.Getenv("NO_COLOR") != "" || a.Getenv("CLICOLOR") == "0" || a.Getenv("TERM") == "dumb" {
		return text
	}
	return string(p) + text + string(plain)
}

// Warn writes a line to standard error.
func (a *App) Warn(format string, args ...any) {
	fmt.Fprintln(a.Stderr, "sandpit: "+output.Printable(fmt.Sprintf(format, args...)))
}

// remedy is the next step after an error, which for a kept server is another than its own answer says.
func (a *App) remedy(err error) string {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	if name := a.SpokenTo(); name != "" && e.Code == fault.Unauthenticated {
		return "sign in again with: sandpit login " + name
	}
	return a.nextStep(e)
}

// waiting says that a server is gone and that it is tried again: else a command just stands there.
func (a *App) waiting(err error, until time.Time) {
	line, stop := "sandpit: %s; trying again until %s; %s to stop\n", "Ctrl-C"
	if a.Raw.Load() {
		line, stop = "\r\n"+line[:len(line)-1]+"\r\n", "the detach keys"
	}
	fmt.Fprintf(a.Stderr, line, output.Printable(output.Whole(err)), until.Format(time.TimeOnly), stop)
}
