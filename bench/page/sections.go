// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sandpit.dev/bench"
	"sandpit.dev/bench/plot"
)

// section is one part of the page: what it says, and the plots above that.
type section struct {
	title string
	plots []string
	body  string // Markdown; "": the section is left out
}

// sections are all figures of a report, in the order of the page. One without figures is
// empty.
func sections(r *bench.Report) []section {
	return []section{
		{"A new sandbox's first command", []string{"first-command"}, firstCommand(r)},
		{"A further command", []string{"exec"}, further(r)},
		{"Crowds and prewarmed sandboxes", []string{"burst"}, burst(r)},
		{"Without a pause", nil, throughput(r)},
		{"What is done in one sandbox", []string{"operations"}, operations(r)},
		{"Snapshots, rollbacks, forks, pauses", []string{"travel-idle", "travel-live"}, travel(r)},
		{"Files in and out", nil, transfer(r)},
		{"What clients of other products ask for", nil, wires(r)},
		{"Pages of the console", nil, console(r)},
		{"Work inside", []string{"inside"}, inside(r)},
		{"The list of changed files", []string{"changes"}, changes(r)},
		{"Processes and their followers", nil, processes(r)},
		{"MCP against REST", nil, protocol(r)},
		{"Network by policy", nil, network(r)},
		{"Beside an attacker", nil, neighbours(r)},
		{"Sandboxes on Docker's Engine", nil, onEngine(r)},
		{"Sandboxes on a Kubernetes cluster", nil, onCluster(r)},
		{"Idle sandboxes", nil, idle(r)},
		{"Many that are alive", []string{"memory", "density"}, density(r)},
		{"Many that are registered", []string{"registered"}, registered(r)},
		{"A growing record", []string{"records"}, records(r)},
	}
}

func firstCommand(r *bench.Report) string {
	if r.FirstCommand == nil {
		return ""
	}
	t := newTiming("create → first command", true)
	t.add("**sandpit**", r.FirstCommand["sandpit"])
	for _, name := range peers(r.FirstCommand) {
		t.add(plain(label(name)), r.FirstCommand[name], r.FirstCommandRatio[name])
	}
	t.add("sandpit, by two requests", r.FirstCommand["sandpit_two_requests"])
	t.add("the create in it", r.Create)
	t.add("sandpit, by `sh -c true`", r.FirstCommand["sandpit_shell"])
	t.add("its delete, not in it", r.Delete)
	pool := "Nothing is prewarmed: each sandbox is made when it is asked for."
	if r.Prewarmed > 0 {
		pool = fmt.Sprintf("**The server kept %d prewarmed sandboxes**: these creates are not cold.", r.Prewarmed)
	}
	s := "From the request for a sandbox to the result of its first command, which is `/bin/true`; one after the other. " + asked(r) + likewise(r) + pool +
		" A ratio says how many times longer a peer took than sandpit did in the same pair, the median over the pairs.\n\n" + t.String()
	if cpu := processorTime(r); cpu != "" {
		s += "Processor time of one whole life (create, command and delete; the server and all that ran inside, without the client; mean), " +
			"which depends less than times do on what else the machine does:\n\n" + cpu
	}
	return s
}

// asked says how sandpit is asked for a sandbox and its first command.
func asked(r *bench.Report) string {
	if r.FirstCommand["sandpit_two_requests"] == nil {
		return ""
	}
	return "One request asks for a sandbox and its first command (`POST /v1/exec`). "
}

// likewise says what of the peers compares with that.
func likewise(r *bench.Report) string {
	if asked(r) == "" {
		return ""
	}
	return "So does one command line for `docker run`, `runc run` and `bwrap`; Docker's API has no such request. A create and a command by two requests are a row of their own. "
}

func processorTime(r *bench.Report) string {
	t := table{head: []string{"processor time of one life", "ms"}}
	for _, name := range slices.Sorted(maps.Keys(r.CPU)) {
		if v := r.CPU[name]; v != nil {
			t.add(plain(label(name)), plot.Number(*v))
		}
	}
	return t.String()
}

func further(r *bench.Report) string {
	if r.Exec == nil {
		return ""
	}
	t := newTiming("command in a sandbox that runs", true)
	t.add("**sandpit**", r.Exec["sandpit"])
	for _, name := range peers(r.Exec) {
		t.add(plain(label(name)), r.Exec[name], r.ExecRatio[name])
	}
	return "`/bin/true` in a sandbox that runs already, in turn with the peers that keep sandboxes.\n\n" + t.String()
}

func operations(r *bench.Report) string {
	o := r.Operations
	t := newTiming("operation", false)
	t.add("command after command, `/bin/true`", o.Exec)
	t.add("the same by `sh -c true`", o.ExecShell)
	t.add("`run_code`, 1 + 1 in a live context", o.RunCode)
	t.add("write a file of 1 MiB", o.Write1MiB)
	t.add("read a file of 1 MiB", o.Read1MiB)
	t.add("stop", o.Stop)
	t.add("start", o.Start)
	if len(t.rows) == 0 {
		return ""
	}
	return "sandpit alone, in one sandbox, one after the other, over REST.\n\n" + t.String()
}

func travel(r *bench.Report) string {
	v := r.Travel
	if v == nil {
		return ""
	}
	t := newTiming("operation", false)
	t.add("pause", v.Pause)
	t.add("resume", v.Resume)
	t.add("the kernel's part of a pause: until all processes stand still", v.Freeze)
	t.add("the kernel's part of a resume", v.Thaw)
	for _, d := range v.Disks {
		where := fmt.Sprintf("%s files, %s", count(d.Files), plain(d.Condition))
		t.add("snapshot, "+where, d.Snapshot)
		t.add("rollback, "+where, d.Rollback)
		t.add("fork, "+where, d.Fork)
	}
	s := "A rollback ends when what ran before runs again, a fork when the fork runs.\n\n" + t.String()
	if f := v.Forks; f != nil && f.Seconds != nil {
		s += fmt.Sprintf("%d forks at once of a sandbox with a workspace of %s MiB: %s s until all run (median over runs).\n\n", f.Count, count(f.WorkspaceMiB), plot.Number(*f.Seconds))
	}
	return s
}

func changes(r *bench.Report) string {
	t := newTiming("files in the workspace", false)
	var grown []string
	for i, tree := range r.FilesChanged {
		t.add(fmt.Sprintf("%s, a command that changes none", count(tree.Files)), tree.None)
		t.add(fmt.Sprintf("%s, one that changes one", count(tree.Files)), tree.One)
		if tree.Growth != nil && i > 0 {
			grown = append(grown, fmt.Sprintf("%s ms with %s files", plus(*tree.Growth), count(tree.Files)))
		}
	}
	if len(t.rows) == 0 {
		return ""
	}
	s := "Each result lists the files that its command changed. That must not grow with the workspace.\n\n" + t.String()
	if grown != nil {
		s += fmt.Sprintf("A command that changes one file takes %s more than with %s (medians over rounds).\n\n", join(grown), count(r.FilesChanged[0].Files))
	}
	return s
}

func processes(r *bench.Report) string {
	x := r.Processes
	if x == nil {
		return ""
	}
	t := newTiming("process", false)
	t.add("start → its end is heard", x.Start)
	t.add(fmt.Sprintf("first frame, %d followers at once", x.Followers), x.Attach)
	t.add("a line → all of them have it", x.Fan)
	s := t.String()
	if x.MBPerSecond != nil {
		s += fmt.Sprintf("Output through a follower: %s MB/s (median over runs). ", plot.Number(*x.MBPerSecond))
	}
	return s + fmt.Sprintf("%s processes one after the other: the agent has %s MB after a tenth of them and %s MB after all (PSS). A follower costs the agent %s kB.\n\n",
		count(x.InARow), plot.Number(x.AgentAfter), plot.Number(x.AgentEnd), plot.Number(x.PerFollow))
}

func protocol(r *bench.Report) string {
	x := r.MCP
	if x == nil {
		return ""
	}
	t := newTiming("`sh -c true`", false)
	t.add("by REST", x.REST)
	t.add("by MCP, stateless", x.Stateless)
	t.add("by MCP, in a session", x.Session)
	s := t.String()
	if x.AddedStateless != nil && x.AddedSession != nil {
		s += fmt.Sprintf("MCP adds %s ms to the same command by REST, and %s ms in a session (medians over pairs).\n\n", plus(*x.AddedStateless), plus(*x.AddedSession))
	}
	return s
}

func network(r *bench.Report) string {
	x := r.Network
	if x == nil {
		return ""
	}
	t := newTiming("network", false)
	t.add("create, network off", x.Off)
	t.add("create, network restricted", x.Restricted)
	t.add("its first request through the gate", x.First)
	t.add("request on a new connection, through the gate", x.Gate)
	t.add("the same to a server inside, past no gate", x.Direct)
	s := t.String()
	if x.More != nil && x.Added != nil {
		s += fmt.Sprintf("A create with a policy takes %s ms more than one with none, and the gate adds %s ms to a request on a new connection (medians over pairs).\n\n", plus(*x.More), plus(*x.Added))
	}
	return s
}

// peers names the peers that were measured, the fastest first.
func peers(figures map[string]*bench.Figures) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		if figures[name] != nil && !strings.HasPrefix(name, "sandpit") {
			names = append(names, name)
		}
	}
	speed := func(name string) float64 {
		if f := figures[name]; f.OK > 0 {
			return f.P50
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch x, y := speed(a), speed(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return names
}
