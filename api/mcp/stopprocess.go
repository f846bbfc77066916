// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// How long a process may take to end by itself before it is killed, and how long
// a signal's effect is waited for.
const (
	stopGrace  = 5 * time.Second
	signalWait = time.Second
)

func stopProcess() tool {
	return tool{
		name: "stop_process", title: "Stop a process", destructive: true, idempotent: true,
		about: "End a process and all that it started: TERM, and KILL after 5 seconds. With signal, only send that one. A run_id of run_sandbox ends that run: its command is killed, no other is begun.",
		params: []param{
			paramStoppable(),
			paramSandbox(),
			{name: "signal", kind: text, about: "Like INT, HUP, KILL."},
		},
		example: `{"process": "p1b2c3"}`,
		run:     stop,
	}
}

func stop(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	process := a.text("process")
	sig, wait, kill := syscall.SIGTERM, stopGrace, true
	if name := a.text("signal"); name != "" {
		s, err := engine.ParseSignal(name)
		if err != nil {
			a.add("signal", "%q is not a valid signal; use TERM, INT, HUP, USR1 or KILL", clip(name))
		}
		sig, wait, kill = s, signalWait, s == syscall.SIGKILL
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	if sandbox.ValidRunID(process) {
		return c.stopRun(ctx, process)
	}
	ref, err := c.place(ctx, false)
	if err != nil {
		return nil, err
	}
	if x := c.cells.find(c.Caller, process); x != nil {
		if kill { // other signals are not for code
			x.cancel(nil)
		}
		x.wait(ctx, stopGrace)
		return x.stopped(ctx, c)
	}
	before, err := c.engine.Process(ctx, c.Caller, ref, process)
	if err != nil {
		return nil, c.noProcess(ctx, ref, process, err)
	}
	how := "had ended already"
	if before.Result == nil {
		if how, err = c.end(ctx, ref, process, sig, wait, kill); err != nil {
			return nil, err
		}
	}
	seen, err := c.watch(ctx, ref, process, watch{cursor: before.LastSeq})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, defaultOutput)
	out.lines = append([]string{how}, out.lines...)
	return out, nil
}

// end sends the signal, and kills what is left if it may.
func (c *call) end(ctx context.Context, ref, process string, sig syscall.Signal, wait time.Duration, kill bool) (how string, err error) {
	if sig != syscall.SIGKILL {
		err := c.engine.SignalProcess(ctx, c.Caller, ref, process, sig, true)
		if err != nil && !fault.Is(err, fault.State) { // it ended meanwhile
			return "", err
		}
		rec, err := c.engine.WaitProcess(ctx, c.Caller, ref, process, wait)
		switch {
		case err != nil:
			return "", err
		case rec.Result != nil:
			return "it ended after " + sigName(sig), nil
		case !kill:
			return sigName(sig) + " was sent; it goes on", nil
		}
	}
	if err := c.engine.KillProcess(ctx, c.Caller, ref, process); err != nil {
		return "", err
	}
	if sig == syscall.SIGKILL {
		return "it was killed", nil
	}
	return "it did not heed " + sigName(sig) + " for " + took(stopGrace) + " and was killed", nil
}

// stopped shows a cell that was interrupted.
func (x *cell) stopped(ctx context.Context, c *call) (*answer, error) {
	if x.ended() && x.err != nil { // which says that it was cancelled, by us
		c.cells.drop(x)
		out := &answer{verdict: "interrupted after " + took(time.Since(x.began)) + " · sandbox " + x.ref, images: x.shown.images}
		x.shown.add(out, nil, defaultOutput)
		return out, nil
	}
	return x.answer(ctx, c, defaultOutput)
}
