// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// named starts a process that sleeps, by a name.
func (h *house) named(ref, name string, labels map[string]string) sandbox.Process {
	h.t.Helper()
	return h.spawn(ref, engine.StartRequest{Shell: "exec sleep 600", Mark: process.Mark{Name: name, Labels: labels}})
}

func TestNamesOfProcesses(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	h.create(engine.CreateRequest{Key: "other"})
	start := func(ref, name string) (sandbox.Process, error) {
		return h.engine.StartProcess(t.Context(), alice, ref, engine.StartRequest{Shell: "exec sleep 600", Mark: process.Mark{Name: name}})
	}

	t.Run("AreThoseOfOneThatRuns", func(t *testing.T) {
		web := h.named("box", "web", map[string]string{"kind": "server"})
		if web.Name != "web" || web.Labels["kind"] != "server" {
			t.Errorf("the answer: %+v", web)
		}
		h.named("other", "web", nil) // in another sandbox it is another's
		_, err := start("box", "web")
		wantCode(t, err, fault.Exists)
		if !strings.Contains(err.Error(), web.ID) || !strings.Contains(fault.As(err).Remedy, "name:web") {
			t.Errorf("%v (%s) does not say who has it", err, fault.As(err).Remedy)
		}
		_, err = h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "touch ran", Mark: process.Mark{Name: "web"}}, nil)
		wantCode(t, err, fault.Exists)
		if res := h.exec("box", "ls -A"); len(res.Stdout) > 0 {
			t.Errorf("what was refused ran: %q", res.Stdout)
		}
		for _, ref := range []string{web.ID, "name:web", "pid:" + strconv.Itoa(web.PID)} {
			got, err := h.engine.Process(t.Context(), alice, "box", ref)
			if err != nil || got.ID != web.ID || got.Name != "web" || got.Labels["kind"] != "server" {
				t.Errorf("%s is %+v, %v", ref, got, err)
			}
		}
		if err := h.engine.KillProcess(t.Context(), alice, "box", "name:web"); err != nil {
			t.Fatal(err)
		}
		// It has ended, and its name is free at once, as often as that is asked for.
		for range 20 {
			next := h.named("box", "web", nil)
			if err := h.engine.SignalProcess(t.Context(), alice, "box", "name:web", syscall.SIGKILL, false); err != nil {
				t.Fatal(err)
			}
			if rec, err := h.engine.WaitProcess(t.Context(), alice, "box", "name:web", time.Minute); err != nil || rec.ID != next.ID || rec.Result == nil {
				t.Fatalf("%+v, %v", rec, err)
			}
		}
	})
	t.Run("GoWhereverAnIDGoes", func(t *testing.T) {
		rec := h.spawn("box", engine.StartRequest{Shell: "cat; exit 3", StreamStdin: true, Mark: process.Mark{Name: "in put"}})
		h.say("box", "name:in put", "he", false)
		h.say("box", "pid:"+strconv.Itoa(rec.PID), "llo\n", true)
		if got := h.follow("box", "name:in put", engine.FollowRequest{}); got.stdout.String() != "hello\n" || got.end.Result.ExitCode != 3 {
			t.Errorf("%q, %+v", got.stdout.String(), got.end)
		}
		// Of one that has ended the name goes on, and the number does not.
		if got, err := h.engine.Process(t.Context(), alice, "box", "name:in put"); err != nil || got.ID != rec.ID || got.Name != "in put" {
			t.Errorf("%+v, %v", got, err)
		}
		_, err := h.engine.Process(t.Context(), alice, "box", "pid:"+strconv.Itoa(rec.PID))
		wantCode(t, err, fault.NotFound)
		wantCode(t, h.engine.SignalProcess(t.Context(), alice, "box", "name:in put", syscall.SIGTERM, false), fault.State)
		tty := h.spawn("box", engine.StartRequest{Shell: "exec sleep 600", Terminal: &engine.TerminalSize{}, Mark: process.Mark{Name: "tty"}})
		if err := h.engine.ResizeProcess(t.Context(), alice, "box", "name:tty", 100, 30); err != nil {
			t.Error(err)
		}
		evs, _, err := h.engine.Activity(t.Context(), alice, "box", engine.ActivityRequest{ProcessID: "name:tty"})
		if err != nil || len(evs) != 1 || evs[0].ProcessID != tty.ID || evs[0].Name != "tty" {
			t.Errorf("the activity: %+v, %v", evs, err)
		}
	})
	t.Run("OfManyAtOnceOneGetsIt", func(t *testing.T) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { _, errs[i] = start("box", "raced") })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				wantCode(t, err, fault.Exists)
			}
		}
		if won != 1 {
			t.Errorf("%d of %d have the name", won, len(errs))
		}
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true, Name: "raced"})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%+v, %v", page.Items, err)
		}
	})
	t.Run("AreRefusedWhereTheyAreNone", func(t *testing.T) {
		many := map[string]string{}
		for i := range 17 {
			many[strconv.Itoa(i)] = ""
		}
		for name, m := range map[string]process.Mark{
			"a slash": {Name: "a/b"}, "a line": {Name: "a\nb"}, "an escape": {Name: "\x1b[2J"}, "a blank": {Name: " a"}, "dots": {Name: ".."},
			"no text": {Name: "\xff"}, "65": {Name: strings.Repeat("ü", 65)}, "17 labels": {Labels: many}, "no name of a label": {Labels: map[string]string{"": "x"}},
			"a long value": {Labels: map[string]string{"x": strings.Repeat("x", 257)}},
		} {
			_, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "true", Mark: m})
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "true", Mark: process.Mark{Name: strings.Repeat("ü", 64)}}); err != nil {
			t.Error(err)
		}
		for _, ref := range []string{"name:", "name:nosuch", "name:a/b", "pid:", "pid:0", "pid:-1", "pid:1x", "pid:99999999999", "pid:4194303", "nosuch:x", "../x"} {
			_, err := h.engine.Process(t.Context(), alice, "box", ref)
			wantCode(t, err, fault.NotFound)
			wantCode(t, h.engine.KillProcess(t.Context(), alice, "box", ref), fault.NotFound)
		}
	})
	t.Run("HaveNoValueOfASecret", func(t *testing.T) {
		if _, err := h.secrets().SetSecret(t.Context(), alice, "box", secrets.Request{Name: "TOKEN", Value: "hunter22hunter22"}); err != nil {
			t.Fatal(err)
		}
		for _, m := range []process.Mark{{Name: "x hunter22hunter22"}, {Labels: map[string]string{"a": "hunter22hunter22"}}, {Labels: map[string]string{"hunter22hunter22": ""}}} {
			_, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "true", Mark: m})
			wantCode(t, err, fault.Invalid)
		}
	})
}

func TestLabelsOfProcesses(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	ids := map[string]string{}
	for i, labels := range []map[string]string{{"a": "1", "b": "x"}, {"a": "1"}, {"a": "2"}, nil} {
		name := fmt.Sprint("p", i)
		ids[h.named("box", name, labels).ID] = name
	}
	count := func(when string, q process.Query, want ...string) {
		t.Helper()
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range page.Items {
			if p.Name != ids[p.ID] {
				t.Errorf("%s: %s is named %q, and not %q", when, p.ID, p.Name, ids[p.ID])
			}
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	all := func(when string) {
		t.Helper()
		count(when, process.Query{}, "p0", "p1", "p2", "p3")
		count(when, process.Query{Labels: map[string]string{"a": "1"}}, "p0", "p1")
		count(when, process.Query{Labels: map[string]string{"a": "1", "b": "x"}}, "p0")
		count(when, process.Query{Labels: map[string]string{"b": ""}})
		count(when, process.Query{Name: "p2"}, "p2")
	}
	all("while they run")
	h.restart() // nothing is remembered by the engine alone
	all("by another engine")
	_, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "true", Mark: process.Mark{Name: "p1"}})
	wantCode(t, err, fault.Exists)
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	all("while it is down")
	if rec, err := h.engine.Process(t.Context(), alice, "box", "name:p1"); err != nil || rec.Result == nil {
		t.Errorf("%+v, %v", rec, err)
	}
	_, err = h.engine.Process(t.Context(), alice, "box", "pid:1")
	wantCode(t, err, fault.State)
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	ids[h.named("box", "p1", nil).ID] = "p1" // it is free again
	_, err = h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Labels: map[string]string{"": "x"}})
	wantCode(t, err, fault.Invalid)
}

func TestOutputIsMerged(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	line := "for i in $(seq 0 199); do echo out $i; echo err $i >&2; done"
	res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: line, MergeOutput: true}, nil)
	if err != nil || string(res.Stdout) != want.String() || len(res.Stderr) != 0 || res.StdoutBytes != int64(want.Len()) || res.StderrBytes != 0 {
		t.Errorf("%d and %d bytes, %v:\n%s", res.StdoutBytes, res.StderrBytes, err, res.Stdout)
	}
	rec := h.spawn("box", engine.StartRequest{Shell: line, MergeOutput: true})
	if got := h.follow("box", rec.ID, engine.FollowRequest{}); got.stdout.String() != want.String() || got.stderr.Len() != 0 {
		t.Errorf("followed: %q and %q", got.stdout.String(), got.stderr.String())
	}
}
