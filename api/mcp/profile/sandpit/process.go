// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

// paramProcess is the argument that says which process.
func paramProcess() toolset.Param {
	return toolset.Param{Name: "process", Kind: toolset.Text, Required: true, About: "Its id, from run_command.", Aliases: []string{"process_id", "pid", "handle"}}
}

// paramStoppable is paramProcess of what ends runs, too.
func paramStoppable() toolset.Param {
	p := paramProcess()
	p.About = "Its id, from run_command, or a run_id."
	p.Aliases = append(p.Aliases, "run_id", "run")
	return p
}

// paramWait is how long a call waits; about says for what.
func paramWait(most float64, about string) toolset.Param {
	return toolset.Param{Name: "wait_seconds", Kind: toolset.Number, Min: 0, Max: most, About: about, Aliases: []string{"wait", "yield_seconds"}}
}

// paramOutput is the bound of the output in an answer.
func paramOutput() toolset.Param {
	return toolset.Param{Name: "max_output_chars", Kind: toolset.Integer, Min: toolset.LeastOutput, Max: toolset.MostOutput, About: "Most characters of output, default 16000.", Aliases: []string{"max_output"}}
}

// longestWait is the most that a tool for processes waits.
const longestWait = 30 * time.Second

// watch says what of a process is wanted.
type watch struct {
	cursor int64
	recent int64         // with cursor 0: about the last so many bytes
	wait   time.Duration // for its end; zero: only what there is
	quiet  time.Duration // not zero: until it was quiet for so long after it wrote something
}

// watched is what was seen of a process.
type watched struct {
	agent.Record
	stdout, stderr toolset.Capture
	cursor         int64  // of the last frame
	lost           string // why some of its output is not here
}

// watchProcess follows a process for a while. One whose sandbox is down, or that the agent has
// let go of, has a record and no output.
func watchProcess(ctx context.Context, c *toolset.Call, ref, process string, w watch) (*watched, error) {
	g, err := c.Engine.Follow(ctx, c.Caller, ref, process, engine.FollowRequest{Cursor: w.cursor, Recent: w.recent, Once: w.wait == 0})
	switch fault.Of(err) {
	case "":
	case fault.State, fault.NotFound:
		rec, perr := c.Engine.Process(ctx, c.Caller, ref, process)
		if perr != nil {
			return nil, noProcess(ctx, c, ref, process, perr)
		}
		return &watched{Record: rec, cursor: w.cursor, lost: "its output is not kept any more; what it wrote to files is there"}, nil
	default:
		return nil, err
	}
	defer g.Close()
	out := &watched{Record: g.Record(), cursor: w.cursor}
	here, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.wait > 0 {
		over := time.AfterFunc(w.wait, cancel)
		defer over.Stop()
	}
	still := time.AfterFunc(time.Hour, cancel)
	still.Stop()
	defer still.Stop()
	end, err := g.Run(here, engine.FollowSink{
		Frame: func(f agent.Frame) error {
			if f.Stream == agent.Stderr {
				out.stderr.Add(f.Data)
			} else {
				out.stdout.Add(f.Data)
			}
			c.Progress.Wrote(f.Data)
			if w.quiet > 0 {
				still.Reset(w.quiet)
			}
			return nil
		},
		Gap: func(gap engine.Gap) error { out.lost = gap.Why; return nil },
	})
	out.cursor = max(out.cursor, end.LastSeq)
	switch {
	case err == nil:
		if end.Ended {
			out.Result, out.State = &end.Result, agent.Exited
		}
		return out, nil
	case errors.Is(context.Cause(ctx), transport.ErrStopping):
		return nil, transport.ErrStopping
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case here.Err() != nil:
		return out, nil
	}
	return nil, err
}

// noProcess says which processes there are, where the one that is asked for is not.
func noProcess(ctx context.Context, c *toolset.Call, ref, process string, err error) error {
	if !fault.Is(err, fault.NotFound) || c.Gone(ctx) {
		return err
	}
	if run, rerr := c.Engine.RunOf(ctx, c.Caller, process); rerr == nil {
		return fault.Wrap(fault.NotFound, err, "%s is a run and no process", run.ID).WithRemedy("%s", strings.Join(batch.Next(c, run), "; "))
	}
	out := fault.Wrap(fault.NotFound, err, "there is no process %q in the sandbox %s", toolset.Clip(process), ref)
	page, lerr := c.Engine.ListProcesses(ctx, c.Caller, ref, engine.ProcessQuery{Running: true, Newest: true, Limit: toolset.Few})
	if lerr != nil || len(page.Items) == 0 {
		return out.WithRemedy("no process runs there; start one with run_command and {\"background\": true}")
	}
	list := ""
	for i, r := range page.Items {
		if i > 0 {
			list += "; "
		}
		list += r.ID + " (" + toolset.Clip(toolset.PrintablePath(commandText(r))) + ")"
	}
	return out.WithRemedy("use one that runs: %s", list)
}

// commandText is a process's command as one text.
func commandText(r agent.Record) string {
	if r.Shell != "" {
		return r.Shell
	}
	out := ""
	for i, a := range r.Argv {
		if i > 0 {
			out += " "
		}
		out += a
	}
	return out
}

// state says in a few words how a process is.
func (w *watched) state() string {
	if w.Result == nil {
		return "process " + w.ID + " runs for " + toolset.Took(time.Since(w.StartedAt))
	}
	e := toolset.Outcome{ExecResult: engine.ExecResult{Result: *w.Result}}
	return "process " + w.ID + " ended: " + e.Verdict()
}

// answer shows a process as it was seen.
func (w *watched) answer(ctx context.Context, c *toolset.Call, ref string, limit int) *toolset.Answer {
	e := toolset.Outcome{ExecResult: engine.ExecResult{ProcessID: w.ID, Running: w.Result == nil}}
	if w.Result != nil {
		e.Result = *w.Result
	}
	e.Show(&w.stdout, &w.stderr, limit)
	out := &toolset.Answer{Verdict: w.state() + " · sandbox " + ref}
	out.Lines = append(out.Lines, e.Reasons(ctx, c)...)
	if w.Result == nil {
		out.Lines = append(out.Lines, "next: "+nextRead(ref, w.ID, w.cursor))
	}
	if w.lost != "" {
		out.Notes = append(out.Notes, "some output is missing: "+w.lost)
	}
	out.Notes = append(out.Notes, c.Shortened(ctx, ref, &e)...)
	out.Sections = e.Sections("")
	return out
}

// nextRead is the call that reads on.
func nextRead(ref, process string, cursor int64) string {
	return fmt.Sprintf(`read_process with {"sandbox": %s, "process": %s, "since": %s, "wait_seconds": 30}`,
		toolset.Quote(ref), toolset.Quote(process), strconv.FormatInt(cursor, 10))
}
