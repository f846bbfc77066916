// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"iter"

	"sandpit.dev/bench"
)

// wires is what clients of other products ask of a sandbox.
func wires(r *bench.Report) string {
	w := r.Wires
	if w == nil {
		return ""
	}
	t := newTiming("what other clients ask for", false)
	t.add("create, no pool", w.Create)
	t.add("create with an account", w.Account)
	t.add("`true`, in a command", w.True)
	t.add("`sudo true`, in a command", w.Sudo)
	t.add("a shell: made, one command, deleted", w.Shell)
	t.add("a look at a sandbox, warm connection", w.Plain)
	t.add("the same by HTTP/2 over TLS", w.TLS)
	t.add("a change, to "+count(w.Streams)+" subscribers, each", w.Events)
	if d := w.Daytona; d != nil {
		t.add("`true` by /v1", d.ExecV1)
		t.add("the same by Daytona's wire", d.Exec)
		t.add("a look by /v1", d.GetV1)
		t.add("the same by Daytona's wire", d.Get)
		t.add("create → first command by Daytona's wire", d.First)
		t.add("the same by its SDK for Python", d.Python)
	}
	for name, c := range coats(w) {
		t.add("a look by /v1", c.GetV1)
		t.add("the same by "+name, c.Get)
		t.add("`true` by /v1", c.ExecV1)
		t.add("the same by "+name, c.Exec)
		t.add("1 KiB written by /v1", c.WriteV1)
		t.add("the same by "+name, c.Write)
		t.add("1 KiB read by /v1", c.ReadV1)
		t.add("the same by "+name, c.Read)
	}
	return "On a server of its own, which speaks TLS, too. Each row beside the one before it, in turn. The subscribers of events share the machine with the server.\n\n" + t.String()
}

// wireMarks are those of the table above.
func wireMarks(r *bench.Report) []mark {
	w := r.Wires
	if w == nil {
		w = new(bench.Wires)
	}
	d := w.Daytona
	if d == nil {
		d = new(bench.Daytona)
	}
	var sockets *float64
	if d.Sockets > 0 {
		sockets = &d.SocketsMB
	}
	marks := []mark{
		{what: "an account, more of a create: p50", limit: .2, unit: " ms", figure: more(w.Create, w.Account)},
		{what: "`sudo true`, more than `true`: p50", limit: 3, unit: " ms", figure: more(w.True, w.Sudo)},
		{what: "a shell with one command: p50", limit: 6, unit: " ms", figure: p50(w.Shell)},
		{what: "event to one of 1,000 subscribers: p99", limit: 20, unit: " ms", figure: p99(w.Events)},
		{what: "TLS with HTTP/2, more of a call: p50", limit: .3, unit: " ms", figure: more(w.Plain, w.TLS)},
		{what: "a command by Daytona's wire, more than by /v1: p50", limit: .3, unit: " ms", figure: more(d.ExecV1, d.Exec)},
		{what: "a look by Daytona's wire, more than by /v1: p50", limit: .3, unit: " ms", figure: more(d.GetV1, d.Get)},
		{what: "create → first command by Daytona's SDK for Python: p50", limit: 12, unit: " ms", figure: p50(d.Python)},
		{what: "1,000 event sockets of Daytona's clients", limit: 30, unit: " MB", figure: sockets},
	}
	for name, c := range coats(w) {
		for _, m := range []mark{
			{what: "a look", figure: more(c.GetV1, c.Get)}, {what: "a command", figure: more(c.ExecV1, c.Exec)},
			{what: "a file of 1 KiB written", figure: more(c.WriteV1, c.Write)}, {what: "the same read", figure: more(c.ReadV1, c.Read)},
		} {
			m.what, m.limit, m.unit = m.what+" by "+name+", more than by /v1: p50", .3, " ms"
			marks = append(marks, m)
		}
	}
	return marks
}

// coats gives the wires of the SDKs by what they are called; one that was not measured is empty.
func coats(w *bench.Wires) iter.Seq2[string, *bench.Coat] {
	return func(yield func(string, *bench.Coat) bool) {
		_ = yield("Orkestr's wire", cmp.Or(w.Orkestr, new(bench.Coat))) && yield("the MCP Gateway's wire", cmp.Or(w.Gateway, new(bench.Coat)))
	}
}

// more is how much longer the second takes than the first.
func more(first, second *bench.Figures) *float64 {
	if first == nil || second == nil {
		return nil
	}
	return new(second.P50 - first.P50)
}
