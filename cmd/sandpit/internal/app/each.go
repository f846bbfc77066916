// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// Each does something to each sandbox, and prints them. One that fails does not
// spare the others; the last failure is the caller's to report.
func (a *App) Each(ctx context.Context, refs []string, f output.Format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	var last error
	done := []*v1.Sandbox{}
	for _, ref := range refs {
		s, err := do(ctx, ref)
		if err != nil {
			if last != nil {
				a.Say(last)
			}
			last = err
			continue
		}
		done = append(done, s)
		if !f.IsData() {
			fmt.Fprintln(a.Stdout, output.Printable(s.Ref()))
		}
	}
	if f.IsData() {
		if err := output.Data(a.Stdout, f, done); err != nil {
			return err
		}
	}
	return last
}

// One does something to a sandbox, and prints it.
func (a *App) One(ctx context.Context, ref string, f output.Format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	s, err := do(ctx, ref)
	if err != nil {
		return err
	}
	if f.IsData() {
		return output.Data(a.Stdout, f, s)
	}
	_, err = fmt.Fprintln(a.Stdout, output.Printable(s.Ref()))
	return err
}

// EachName does something to each thing that is named, and prints the names. One
// that fails does not spare the others; the last failure is the caller's to report.
func (a *App) EachName(names []string, do func(string) error) error {
	var last error
	for _, name := range names {
		if err := do(name); err != nil {
			if last != nil {
				a.Say(last)
			}
			last = err
			continue
		}
		fmt.Fprintln(a.Stdout, output.Printable(name))
	}
	return last
}

// ListPage is how many sandboxes are asked for at once.
const ListPage = 200
