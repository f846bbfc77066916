// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"syscall"
	"time"

	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
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

func stopProcess(cs *cells) toolset.Tool {
	return toolset.Tool{
		Name: "stop_process", Title: "Stop a process", Destructive: true, Idempotent: true,
		About: "End a process and all that it started: TERM, and KILL after 5 seconds. With signal, only send that one. A run_id of run_sandbox ends that run: its command is killed, no other is begun.",
		Params: []toolset.Param{
			paramStoppable(),
			paramSandbox(),
			{Name: "signal", Kind: toolset.Text, About: "Like INT, HUP, KILL."},
		},
		Example: `{"process": "p1b2c3"}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return stop(ctx, c, cs) },
	}
}

func stop(ctx context.Context, c *toolset.Call, cs *cells) (*toolset.Answer, error) {
	a := c.Args
	process := a.Text("process")
	sig, wait, kill := syscall.SIGTERM, stopGrace, true
	if name := a.Text("signal"); name != "" {
		s, err := engine.ParseSignal(name)
		if err != nil {
			a.Add("signal", "%q is not a valid signal; use TERM, INT, HUP, USR1 or KILL", toolset.Clip(name))
		}
		sig, wait, kill = s, signalWait, s == syscall.SIGKILL
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if sandbox.ValidRunID(process) {
		return batch.Stop(ctx, c, process)
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	if x := cs.find(c.Caller, process); x != nil {
		if kill { // other signals are not for code
			x.cancel(nil)
		}
		x.wait(ctx, stopGrace)
		return x.stopped(ctx, c)
	}
	before, err := c.Engine.Process(ctx, c.Caller, ref, process)
	if err != nil {
		return nil, noProcess(ctx, c, ref, process, err)
	}
	how := "had ended already"
	if before.Result == nil {
		if how, err = endProcess(ctx, c, ref, process, sig, wait, kill); err != nil {
			return nil, err
		}
	}
	seen, err := watchProcess(ctx, c, ref, process, watch{cursor: before.LastSeq})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, toolset.DefaultOutput)
	out.Lines = append([]string{how}, out.Lines...)
	return out, nil
}

// endProcess sends the signal, and kills what is left if it may.
func endProcess(ctx context.Context, c *toolset.Call, ref, process string, sig syscall.Signal, wait time.Duration, kill bool) (how string, err error) {
	if sig != syscall.SIGKILL {
		err := c.Engine.SignalProcess(ctx, c.Caller, ref, process, sig, true)
		if err != nil && !fault.Is(err, fault.State) { // it ended meanwhile
			return "", err
		}
		rec, err := c.Engine.WaitProcess(ctx, c.Caller, ref, process, wait)
		switch {
		case err != nil:
			return "", err
		case rec.Result != nil:
			return "it ended after " + toolset.SigName(sig), nil
		case !kill:
			return toolset.SigName(sig) + " was sent; it goes on", nil
		}
	}
	if err := c.Engine.KillProcess(ctx, c.Caller, ref, process); err != nil {
		return "", err
	}
	if sig == syscall.SIGKILL {
		return "it was killed", nil
	}
	return "it did not heed " + toolset.SigName(sig) + " for " + toolset.Took(stopGrace) + " and was killed", nil
}

// stopped shows a cell that was interrupted.
func (x *cell) stopped(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	if x.ended() && x.err != nil { // which says that it was cancelled, by us
		x.drop()
		out := &toolset.Answer{Verdict: "interrupted after " + toolset.Took(time.Since(x.began)) + " · sandbox " + x.ref, Images: x.shown.images}
		x.shown.add(out, nil, toolset.DefaultOutput)
		return out, nil
	}
	return x.answer(ctx, c, toolset.DefaultOutput)
}
