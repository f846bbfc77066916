// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// ours measures a server through its public API.
type ours struct {
	client *client.Client
	pid    int // of the server

	create, remove series // of what inTwo and end do
}

var (
	byArgv  = v1.Exec{Argv: []string{"/bin/true"}}
	byShell = v1.Exec{Command: new("true")}
)

// firstCommand times how long a new sandbox's first command's result takes, which is one request.
func (o *ours) firstCommand(ctx context.Context, command v1.Exec) (time.Duration, error) {
	began := time.Now()
	id, err := o.ready(ctx, command)
	took := time.Since(began)
	return took, errors.Join(err, o.end(ctx, id))
}

// inTwo is firstCommand by two requests, one after the other.
func (o *ours) inTwo(ctx context.Context, command v1.Exec) (time.Duration, error) {
	began := time.Now()
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
	o.create.add(time.Since(began), err)
	if err != nil {
		return 0, err
	}
	err = o.exec(ctx, box.ID, command)
	took := time.Since(began)
	return took, errors.Join(err, o.end(ctx, box.ID))
}

// ready makes a sandbox and runs a first command, which has to end with 0; the id is given
// also with an error, where there is one.
func (o *ours) ready(ctx context.Context, command v1.Exec) (id string, err error) {
	r, err := o.client.CreateExec(ctx, v1.CreateExec{Exec: command})
	if err != nil {
		return "", err
	}
	return r.SandboxID, ended(&r.ExecOutcome)
}

// end deletes the sandbox of a first command; empty: there is none.
func (o *ours) end(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	began := time.Now()
	err := o.client.Delete(ctx, id)
	o.remove.add(time.Since(began), err)
	return err
}

// exec runs a command that has to end with 0.
func (o *ours) exec(ctx context.Context, ref string, command v1.Exec) error {
	r, err := o.client.Exec(ctx, ref, command)
	if err != nil {
		return err
	}
	return ended(&r.ExecOutcome)
}

// ended is an error unless a command ended with 0.
func ended(r *v1.ExecOutcome) error {
	if r.ExitCode == nil || *r.ExitCode != 0 {
		return fmt.Errorf("the command ended with %s, cause %q", number(r.ExitCode), r.Cause)
	}
	return nil
}

func number(n *int) string {
	if n == nil {
		return "no exit code"
	}
	return fmt.Sprint(*n)
}

// timed runs fn n times, and collects.
func timed(ctx context.Context, n int, fn func() error) (series, error) {
	var s series
	var errs error
	for range n {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		began := time.Now()
		err := fn()
		s.add(time.Since(began), err)
		errs = firstOf(errs, err)
	}
	if len(s.ok) == 0 {
		return s, errs
	}
	return s, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// operations times what is done in one sandbox.
func (o *ours) operations(ctx context.Context, pairs int, out *Report) (err error) {
	box, _, err := o.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.client.Delete(ctx, box.ID)) }()
	if err := o.exec(ctx, box.ID, byArgv); err != nil {
		return err
	}
	if err := o.runCode(ctx, box.ID); err != nil { // makes the context
		return err
	}
	const size = 1 << 20
	content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	few := max(10, pairs/10)
	for _, step := range []struct {
		n    int
		into **Figures
		run  func() error
	}{
		{pairs * 5, &out.Operations.Exec, func() error { return o.exec(ctx, box.ID, byArgv) }},
		{pairs * 2, &out.Operations.ExecShell, func() error { return o.exec(ctx, box.ID, byShell) }},
		{pairs * 2, &out.Operations.RunCode, func() error { return o.runCode(ctx, box.ID) }},
		{pairs, &out.Operations.Write1MiB, func() error {
			return o.client.WriteFile(ctx, box.ID, "bench.bin", bytes.NewReader(content), client.WriteOptions{Size: size})
		}},
		{pairs, &out.Operations.Read1MiB, func() error { return o.read(ctx, box.ID, size) }},
	} {
		s, err := timed(ctx, step.n, step.run)
		if err != nil {
			return err
		}
		*step.into = s.figures()
	}
	var stop, start series
	for range few {
		stop.add(timedOnce(func() error { _, err := o.client.Stop(ctx, box.ID); return err }))
		start.add(timedOnce(func() error { _, err := o.client.Start(ctx, box.ID); return err }))
	}
	out.Operations.Stop, out.Operations.Start = stop.figures(), start.figures()
	return ctx.Err()
}

// runCode runs a cell that has to have a value.
func (o *ours) runCode(ctx context.Context, ref string) error {
	r, err := o.client.RunCode(ctx, ref, v1.RunCode{Code: "1 + 1"})
	if err == nil && (len(r.Results) != 1 || r.Results[0].Text != "2") {
		err = fmt.Errorf("the code ended with %s and %d results", r.Status, len(r.Results))
	}
	return err
}

func (o *ours) read(ctx context.Context, ref string, size int64) error {
	f, err := o.client.ReadFile(ctx, ref, "bench.bin", client.ReadOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	n, err := io.Copy(io.Discard, f)
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes of %d", n, size)
	}
	return err
}
