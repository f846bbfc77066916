// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// paramProcess is the argument that says which process.
func paramProcess() toolset.Param {
	return toolset.Param{Name: "process", Kind: toolset.Text, Required: true, About: "Its id, or name:NAME.", Aliases: []string{"process_id", "pid", "handle"}}
}

// paramStoppable is paramProcess of what ends runs, too, and all.
func paramStoppable() toolset.Param {
	p := paramProcess()
	p.Required = false
	p.About = "Its id, name:NAME, or a run_id."
	p.Aliases = append(p.Aliases, "run_id", "run")
	return p
}

// paramWait is how long a call waits; about says for what.
func paramWait(most float64, about string) toolset.Param {
	return toolset.Param{Name: "wait_seconds", Kind: toolset.Number, Min: 0, Max: most, About: about, Aliases: []string{"wait", "yield_seconds"}}
}

// paramOutput is the bound of the output in an answer.
func paramOutput() toolset.Param {
	return toolset.Param{Name: "max_output_chars", Kind: toolset.Integer, Min: toolset.LeastOutput, Max: toolset.MostOutput, About: "Default 16000.", Aliases: []string{"max_output"}}
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
	sandbox.Process
	stdout, stderr toolset.Capture
	cursor         int64  // of the last frame
	lost           string // why some of its output is not here
}

// watchProcess follows a process for a while. One whose sandbox is down, or that the agent has
// let go of, has a record and no output.
func watchProcess(ctx context.Context, c *toolset.Call, ref, id string, w watch) (*watched, error) {
	g, err := c.Processes.Follow(ctx, c.Caller, ref, id, engine.FollowRequest{Cursor: w.cursor, Recent: w.recent, Once: w.wait == 0})
	switch fault.Of(err) {
	case "":
	case fault.State, fault.NotFound:
		rec, perr := c.Processes.Process(ctx, c.Caller, ref, id)
		if perr != nil {
			return nil, noProcess(ctx, c, ref, id, perr)
		}
		return &watched{Process: rec, cursor: w.cursor, lost: "its output is not kept any more; what it wrote to files is there"}, nil
	default:
		return nil, err
	}
	defer g.Close()
	out := &watched{Process: g.Record(), cursor: w.cursor}
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
		Frame: func(f sandbox.Frame) error {
			if f.Stream == sandbox.Stderr {
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
			out.Result, out.State = &end.Result, sandbox.ProcessExited
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
func noProcess(ctx context.Context, c *toolset.Call, ref, id string, err error) error {
	if !fault.Is(err, fault.NotFound) || c.Gone(ctx) {
		return err
	}
	if run, rerr := c.Runs.Get(ctx, c.Caller, id); rerr == nil {
		return fault.Wrap(fault.NotFound, err, "%s is a run and no process", run.ID).WithRemedy("%s", strings.Join(batch.Next(c, run), "; "))
	}
	out := fault.Wrap(fault.NotFound, err, "there is no process %q in the sandbox %s", toolset.Clip(id), ref)
	page, lerr := c.Processes.ListProcesses(ctx, c.Caller, ref, process.Query{Running: true, Newest: true, Limit: toolset.Few})
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
func commandText(r sandbox.Process) string {
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
func nextRead(ref, id string, cursor int64) string {
	return fmt.Sprintf(`read_process with {"sandbox": %s, "process": %s, "since": %s, "wait_seconds": 30}`,
		toolset.Quote(ref), toolset.Quote(id), strconv.FormatInt(cursor, 10))
}

// processShape is a process as the tools show it.
type processShape struct {
	Process   string            `json:"process"`
	Name      string            `json:"name,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Status    string            `json:"status"`
	Command   string            `json:"command,omitempty"`
	Argv      []string          `json:"argv,omitempty"`
	Cwd       string            `json:"cwd"`
	User      string            `json:"user"`
	Terminal  bool              `json:"terminal,omitempty"`
	PID       int               `json:"pid,omitempty"` // inside
	StartedAt string            `json:"started_at"`
	ExitCode  *int              `json:"exit_code,omitempty"`
	Signal    string            `json:"signal,omitempty"`
	Cause     string            `json:"cause,omitempty"`

	SignaledBy   string `json:"signaled_by,omitempty"`
	SignaledWith string `json:"signaled_with,omitempty"`
}

func processShapeOf(r sandbox.Process) processShape {
	out := processShape{
		Process: r.ID, Name: r.Name, Labels: r.Labels, Status: "running", Command: r.Shell, Argv: r.Argv, Cwd: r.Cwd, User: r.User, Terminal: r.Terminal,
		PID: r.PID, StartedAt: toolset.TimeText(r.StartedAt),
	}
	if res := r.Result; res != nil {
		out.Status, out.ExitCode, out.Signal, out.Cause = "exited", &res.ExitCode, res.Signal, string(res.Cause)
		out.SignaledBy, out.SignaledWith = res.Signaled.By, res.Signaled.With
	}
	return out
}

// processList is the structured answer of list_processes.
type processList struct {
	Processes  []processShape `json:"processes"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

func listProcesses() toolset.Tool {
	return toolset.Tool{
		Name: "list_processes", Title: "List processes", ReadOnly: true, Idempotent: true,
		About: "List the commands of a sandbox that run, or with all those that have ended, too; the newest first. read_process, write_process and stop_process take their ids.",
		Params: []toolset.Param{
			paramSandbox(),
			{Name: "all", Kind: toolset.Boolean, About: "Those that have ended, too. Default false."},
			{Name: "terminals", Kind: toolset.Boolean, About: "Only those at a terminal. Default false."},
			{Name: "labels", Kind: toolset.Texts, About: "Only those with these, as NAME=VALUE."},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"sandbox": "my-project"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			a := c.Args
			all := a.Bool("all", false)
			q := process.Query{Running: !all, Tty: a.Bool("terminals", false), Newest: true, Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor"), Labels: a.Env("labels")}
			if err := a.Err(); err != nil {
				return nil, err
			}
			ref, err := place(ctx, c, false)
			if err != nil {
				return nil, err
			}
			page, err := c.Processes.ListProcesses(ctx, c.Caller, ref, q)
			if err != nil {
				return nil, err
			}
			out := processList{Processes: make([]processShape, 0, len(page.Items)), NextCursor: page.Next}
			what := toolset.Counted(len(page.Items), "process runs", "processes run")
			if all {
				what = toolset.Counted(len(page.Items), "process", "processes")
			}
			ans := &toolset.Answer{Verdict: what + " in sandbox " + ref}
			var b strings.Builder
			for _, r := range page.Items {
				out.Processes = append(out.Processes, processShapeOf(r))
				b.WriteString(processLine(r) + "\n")
			}
			if page.Next != "" {
				ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
			}
			if b.Len() > 0 {
				ans.Sections = []toolset.Section{{Title: "processes", Body: b.String()}} // what they run is not the server's words
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

func processLine(r sandbox.Process) string {
	line := r.ID + " · runs for " + toolset.Took(time.Since(r.StartedAt))
	if r.Result != nil {
		e := toolset.Outcome{ExecResult: engine.ExecResult{Result: *r.Result}}
		line = r.ID + " · " + e.Verdict()
	}
	if r.Name != "" {
		line += " · " + process.ByName + toolset.Clip(r.Name)
	}
	if r.Terminal {
		line += " · at a terminal"
	}
	return line + " · " + oneLineOf(commandText(r))
}

// How long a process may take to end by itself before it is killed, and how long
// a signal's effect is waited for.
const (
	stopGrace  = 5 * time.Second
	signalWait = time.Second
)

func stopProcess(cs *cells) toolset.Tool {
	return toolset.Tool{
		Name: "stop_process", Title: "Stop a process", Destructive: true, Idempotent: true,
		About: "End a process and all that it started: TERM, and KILL after 5 seconds. With signal, only send that one. A run_id of run_sandbox ends that run: its command is killed, no other is begun. " +
			"With all, everything that runs in the sandbox is killed and its files stay; it works where no more process can be started, as after a fork bomb.",
		Params: []toolset.Param{
			paramStoppable(),
			paramSandbox(),
			{Name: "signal", Kind: toolset.Text, About: "Like INT, HUP, KILL."},
			{Name: "all", Kind: toolset.Boolean, About: "All that runs in the sandbox, in place of process."},
		},
		Example: `{"process": "p1b2c3"}`,
		Run:     func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) { return stop(ctx, c, cs) },
	}
}

func stop(ctx context.Context, c *toolset.Call, cs *cells) (*toolset.Answer, error) {
	a := c.Args
	id, all := a.Text("process"), a.Bool("all", false)
	switch {
	case all && (id != "" || a.Has("signal")):
		a.Add("all", "is given beside process or signal; it kills everything, so give it alone")
	case !all && id == "":
		a.Add("process", "is empty; give the id of one, or all: true for everything that runs in the sandbox")
	}
	sig, wait, kill := syscall.SIGTERM, stopGrace, true
	if name := a.Text("signal"); name != "" {
		s, err := process.ParseSignal(name)
		if err != nil {
			a.Add("signal", "%q is not a valid signal; use TERM, INT, HUP, USR1 or KILL", toolset.Clip(name))
		}
		sig, wait, kill = s, signalWait, s == syscall.SIGKILL
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if all {
		return stopAll(ctx, c)
	}
	if sandbox.ValidRunID(id) {
		return batch.Stop(ctx, c, id)
	}
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	if x := cs.find(c.Caller, id); x != nil {
		if kill { // other signals are not for code
			x.cancel(nil)
		}
		x.wait(ctx, stopGrace)
		return x.stopped(ctx, c)
	}
	before, err := c.Processes.Process(ctx, c.Caller, ref, id)
	if err != nil {
		return nil, noProcess(ctx, c, ref, id, err)
	}
	id = before.ID // its name may be another's in a moment
	how := "had ended already"
	if before.Result == nil {
		if how, err = endProcess(ctx, c, ref, id, sig, wait, kill); err != nil {
			return nil, err
		}
	}
	seen, err := watchProcess(ctx, c, ref, id, watch{cursor: before.LastSeq})
	if err != nil {
		return nil, err
	}
	out := seen.answer(ctx, c, ref, toolset.DefaultOutput)
	out.Lines = append([]string{how}, out.Lines...)
	return out, nil
}

// stopAll ends all that runs in a sandbox.
func stopAll(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	ref, err := place(ctx, c, false)
	if err != nil {
		return nil, err
	}
	if s, err := c.Sandboxes.Get(ctx, c.Caller, ref); err == nil && s.State.Down() {
		return &toolset.Answer{Verdict: fmt.Sprintf("nothing runs in sandbox %s, which is %s; the next command starts it", ref, s.State)}, nil
	}
	if err := c.Processes.KillAll(ctx, c.Caller, ref); err != nil {
		return nil, err
	}
	return &toolset.Answer{Verdict: "killed all that ran in sandbox " + ref + "; its files are as they were"}, nil
}

// endProcess sends the signal, and kills what is left if it may.
func endProcess(ctx context.Context, c *toolset.Call, ref, id string, sig syscall.Signal, wait time.Duration, kill bool) (how string, err error) {
	if sig != syscall.SIGKILL {
		err := c.Processes.SignalProcess(ctx, c.Caller, ref, id, sig, true)
		if err != nil && !fault.Is(err, fault.State) { // it ended meanwhile
			return "", err
		}
		rec, err := c.Processes.WaitProcess(ctx, c.Caller, ref, id, wait)
		switch {
		case err != nil:
			return "", err
		case rec.Result != nil:
			return "it ended after " + toolset.SigName(sig), nil
		case !kill:
			return toolset.SigName(sig) + " was sent; it goes on", nil
		}
	}
	if err := c.Processes.KillProcess(ctx, c.Caller, ref, id); err != nil {
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
