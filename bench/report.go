// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a whole run. What was not measured is null; Missing says why.
type Report struct {
	At        time.Time         `json:"at"`
	Machine   Machine           `json:"machine"`
	Versions  map[string]string `json:"versions"`
	Pairs     int               `json:"pairs"`
	Prewarmed int               `json:"prewarmed"` // that the server kept ready for the next creates
	Parts     []string          `json:"parts"`     // that were measured
	Took      float64           `json:"took_seconds"`

	// FirstCommand is create → the first command's result, by who did it: cold, one after the
	// other, no pool. The command is argv ["/bin/true"], and one request (POST /v1/exec) asks for both;
	// "sandpit_two_requests" creates by one and runs by another, and the command of "sandpit_shell" is
	// sh -c true. A peer that is not there is null.
	FirstCommand map[string]*Figures `json:"create_first_command"`
	// FirstCommandRatio says how many times longer a peer takes: the median over pairs.
	FirstCommandRatio map[string]*float64 `json:"create_first_command_ratio"`
	Create            *Figures            `json:"create"`
	Delete            *Figures            `json:"delete"`
	// CPU is the processor time of one whole life, in milliseconds, the mean:
	// create, command and delete, of the server and all that ran inside, without
	// the client; and of a peer with all that it started, where that is known. It
	// depends less than times do on what else the machine does.
	CPU map[string]*float64 `json:"cpu_ms_each"`
	// Exec is a command in a sandbox that runs.
	Exec      map[string]*Figures `json:"exec"`
	ExecRatio map[string]*float64 `json:"exec_ratio"`
	// Operations are done in one sandbox, one after the other.
	Operations struct {
		Exec      *Figures `json:"exec"`
		ExecShell *Figures `json:"exec_shell"`
		RunCode   *Figures `json:"run_code"` // a trivial cell in a live context
		Write1MiB *Figures `json:"write_1mib"`
		Read1MiB  *Figures `json:"read_1mib"`
		Stop      *Figures `json:"stop"`
		Start     *Figures `json:"start"`
	} `json:"operations"`
	MCP *MCP `json:"mcp"`
	// FilesChanged is commands in workspaces of several sizes.
	FilesChanged []Tree      `json:"files_changed"`
	Network      *Network    `json:"network"`
	Travel       *Travel     `json:"travel"`
	Processes    *Processes  `json:"processes"`
	Idle         *Idle       `json:"idle"`
	Burst        *Burst      `json:"burst"`
	Throughput   *Throughput `json:"throughput"`
	Transfer     *Transfer   `json:"transfer"`
	Wires        *Wires      `json:"wires"`
	Console      *Console    `json:"console"`
	Inside       *Inside     `json:"inside"`
	Density      *Density    `json:"density"`
	Records      *Records    `json:"records"`
	Registered   *Registered `json:"registered"`
	Neighbours   *Neighbours `json:"neighbours"`
	OnDocker     OnDocker    `json:"on_docker"`

	OnKubernetes *OnKubernetes `json:"on_kubernetes"`

	Missing  map[string]string `json:"missing"`  // peers that were not measured, and why
	Failures []string          `json:"failures"` // the first of each side
}

// noun is a part of the report that knows its own words; nil has none.
type noun interface {
	rows(row func(name string, f *Figures))
	lines(say func(format string, args ...any))
}

// nouns are in the order in which they are told.
func (r *Report) nouns() []noun {
	return append([]noun{r.Burst, r.Throughput, r.Transfer, r.Wires, r.Console, r.Inside, r.Density, r.Records, r.Registered, r.Neighbours}, append(r.OnDocker.nouns(), r.OnKubernetes)...)
}

// conceal takes the path of the private directory out of what was said: it is gone, and
// means nothing to whoever reads the report elsewhere.
func (r *Report) conceal(dir string) {
	for name, why := range r.Missing {
		r.Missing[name] = strings.ReplaceAll(why, dir, "DIR")
	}
	for i, failure := range r.Failures {
		r.Failures[i] = strings.ReplaceAll(failure, dir, "DIR")
	}
}

// WriteJSON writes the whole report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes it as tables for people.
func (r *Report) WriteText(w io.Writer) error {
	m := r.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores (%s), %d MB, Linux %s, data on %s\n", r.At.Format(time.DateTime), m.Cores, m.CPU, m.MemoryMB, m.Kernel, m.DataFS)
	fmt.Fprintf(&b, "load %.2f before, %.2f after with the benchmark's own; meanwhile others used %.2f cores, and %.2f were stolen: ",
		m.LoadBefore, m.LoadAfter, m.Others, m.Stolen)
	if m.Busy() {
		b.WriteString("the machine was BUSY, times mean little, ratios something\n")
	} else {
		b.WriteString("the machine was quiet\n")
	}
	if m.CPUID > 0 {
		fmt.Fprintf(&b, "one CPUID instruction: %.2f us; a program with shared libraries starts with some 70\n", m.CPUID)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "%s: %s\n", name, r.Versions[name])
	}
	how := "cold, no pool"
	if r.Prewarmed > 0 {
		how = fmt.Sprintf("with %d prewarmed", r.Prewarmed)
	}
	fmt.Fprintf(&b, "\n%d interleaved pairs, %s, one after the other; milliseconds\n\n", r.Pairs, how)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tworked\tmin\tp50\tp95\tp99\t")
	row := func(name string, f *Figures) {
		if f != nil {
			fmt.Fprintf(t, "%s\t%d of %d\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, f.OK, f.N, f.Min, f.P50, f.P95, f.P99)
		}
	}
	row("create → first command, sandpit", r.FirstCommand["sandpit"])
	row("the same by two requests", r.FirstCommand[inTwo])
	row("the same by sh -c", r.FirstCommand[inShell])
	for _, name := range others(r.FirstCommand) {
		row("create → first command, "+name, r.FirstCommand[name])
	}
	row("command in a running sandbox, sandpit", r.Exec["sandpit"])
	for _, name := range others(r.Exec) {
		row("command in a running sandbox, "+name, r.Exec[name])
	}
	row("command after command, sandpit alone", r.Operations.Exec)
	row("the same by sh -c", r.Operations.ExecShell)
	row("run_code, 1 + 1 in a live context", r.Operations.RunCode)
	row("create", r.Create)
	row("delete", r.Delete)
	row("write a file of 1 MiB", r.Operations.Write1MiB)
	row("read a file of 1 MiB", r.Operations.Read1MiB)
	row("stop", r.Operations.Stop)
	row("start", r.Operations.Start)
	if x := r.MCP; x != nil {
		row("sh -c true by REST, in turn with", x.REST)
		row("the same by MCP, stateless", x.Stateless)
		row("the same by MCP, in a session", x.Session)
	}
	if x := r.Network; x != nil {
		row("create, network off, in pairs with", x.Off)
		row("create, network restricted", x.Restricted)
		row("its first request through the gate", x.First)
		row("request on a new connection, gate", x.Gate)
		row("the same to a server inside, no gate", x.Direct)
	}
	if v := r.Travel; v != nil {
		row("pause", v.Pause)
		row("resume", v.Resume)
		row("the kernel's part: freeze", v.Freeze)
		row("the kernel's part: thaw", v.Thaw)
		for _, d := range v.Disks {
			row(fmt.Sprintf("snapshot, %d files, %s", d.Files, d.Condition), d.Snapshot)
			row("its rollback", d.Rollback)
			row("its fork", d.Fork)
		}
	}
	for _, tree := range r.FilesChanged {
		row(fmt.Sprintf("command in a workspace of %d files", tree.Files), tree.None)
		row("one that changes one of them", tree.One)
	}
	if x := r.Processes; x != nil {
		row("process: start → its end is heard", x.Start)
		row(fmt.Sprintf("first frame, %d followers at once", x.Followers), x.Attach)
		row("a line → all of them have it", x.Fan)
	}
	for _, x := range r.nouns() {
		x.rows(row)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.Reset()
	b.WriteString("\n")
	for _, name := range others(r.FirstCommand) {
		if x := r.FirstCommandRatio[name]; x != nil {
			fmt.Fprintf(&b, "%s takes %.1f times as long as sandpit to the first command", name, *x)
			if e := r.ExecRatio[name]; e != nil {
				fmt.Fprintf(&b, ", and %.1f times for a further one", *e)
			}
			b.WriteString(" (medians over the pairs)\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.CPU)) {
		if x := r.CPU[name]; x != nil {
			fmt.Fprintf(&b, "processor time of one life, %s: %.2f ms\n", name, *x)
		}
	}
	for _, tree := range r.FilesChanged {
		if tree.Growth != nil && tree.Files != r.FilesChanged[0].Files {
			fmt.Fprintf(&b, "files_changed: with %d files in the workspace a command that changes one takes %+.2f ms more than with %d (median over rounds)\n",
				tree.Files, *tree.Growth, r.FilesChanged[0].Files)
		}
	}
	if x := r.Processes; x != nil {
		if x.MBPerSecond != nil {
			fmt.Fprintf(&b, "stdout through a follower: %.0f MB/s (median over runs)\n", *x.MBPerSecond)
		}
		fmt.Fprintf(&b, "%d processes one after the other: the agent has %.2f MB after a tenth of them and %.2f MB after all (PSS); a follower costs it %.0f kB\n",
			x.InARow, x.AgentAfter, x.AgentEnd, x.PerFollow)
	}
	if x := r.MCP; x != nil && x.AddedStateless != nil && x.AddedSession != nil {
		fmt.Fprintf(&b, "MCP adds %+.2f ms to the same command by REST, and %+.2f ms in a session (medians over pairs)\n", *x.AddedStateless, *x.AddedSession)
	}
	if x := r.Network; x != nil && x.More != nil && x.Added != nil {
		fmt.Fprintf(&b, "network: a create with a policy takes %+.2f ms more than one with none, the gate adds %+.2f ms to a request on a new connection (medians over pairs)\n", *x.More, *x.Added)
	}
	if v := r.Travel; v != nil && v.Forks.Seconds != nil {
		fmt.Fprintf(&b, "%d forks of a sandbox with a workspace of %d MiB: %.2f s until all run (median over runs)\n",
			v.Forks.Count, v.Forks.WorkspaceMiB, *v.Forks.Seconds)
	}
	for _, x := range r.nouns() {
		x.lines(func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	}
	if i := r.Idle; i != nil {
		fmt.Fprintf(&b, "%d idle sandboxes: %.2f MB each in %.1f processes (PSS); the host's available memory fell by %.2f MB each, of which the server %.2f\n",
			i.Sandboxes, i.PSS, i.Processes, i.Available, i.Server)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "%s was not measured: %s\n", name, r.Missing[name])
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "failed at least once: %s\n", f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
