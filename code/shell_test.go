// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// in runs a command in a shell, however it ends.
func (h *house) in(shell, command string) code.ShellResult {
	h.t.Helper()
	return h.inWith(shell, engine.ExecRequest{Shell: command})
}

func (h *house) inWith(shell string, r engine.ExecRequest) code.ShellResult {
	h.t.Helper()
	res, err := h.code.ShellExec(h.t.Context(), alice, "box", shell, r, nil)
	if err != nil {
		h.t.Fatalf("in %s, %q: %v", shell, r.Shell, err)
	}
	return res
}

// said checks what a command wrote and its exit code.
func said(t *testing.T, r code.ShellResult, stdout string, exit int) {
	t.Helper()
	if string(r.Stdout) != stdout || r.ExitCode != exit {
		t.Errorf("it said %q and %q and ended with %d (%s), want %q and %d", r.Stdout, r.Stderr, r.ExitCode, r.CauseDetail, stdout, exit)
	}
}

func TestShell(t *testing.T) {
	needs(t, "bash")
	started := func(t *testing.T) *house {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		return h
	}
	t.Run("KeepsWhatItsCommandsLeave", func(t *testing.T) {
		h := started(t)
		first := h.in("main", "cd /usr; x=5; export E=e; f() { echo f $x $1; }; shopt -s expand_aliases; alias hi='echo aliased'; sleep 1000 & echo out; echo err >&2; (exit 3)")
		said(t, first, "out\n", 3)
		if string(first.Stderr) != "err\n" || first.Shell.Name != "main" || first.Shell.Restarted != "" || first.Shell.Ended || first.ProcessID == "" {
			t.Errorf("%+v", first)
		}
		said(t, h.in("main", "echo $?; f 1; pwd; bash -c 'echo $E'; hi; kill %1 && echo killed"), "3\nf 5 1\n/usr\ne\naliased\nkilled\n", 0)
		said(t, h.in("other", "echo [$x]; pwd | tail -c 11"), "[]\n/workspace\n", 0)
		said(t, h.inWith("main", engine.ExecRequest{Argv: []string{"printf", "%s|", "it's", "$x", "a\nb", ""}}), "it's|$x|a\nb||", 0)
		said(t, h.inWith("main", engine.ExecRequest{Shell: "echo $ONCE", Env: map[string]string{"ONCE": "now"}}), "now\n", 0)
		said(t, h.in("main", "echo [$ONCE]"), "[]\n", 0)
	})
	t.Run("BehavesAsALoginShell", func(t *testing.T) {
		h := started(t)
		for _, c := range []struct {
			command, stdin, stdout string
			exit                   int
		}{
			{command: "for i in 1 2; do\n  echo $i\ndone\ncat <<'EOF'\nhere's $x\nEOF", stdout: "1\n2\nhere's $x\n"},
			{command: "read a; cat", stdin: "one\ntwo", stdout: "two"},
			{command: "cat", stdout: ""},
			{command: "false | true; echo ${PIPESTATUS[0]}", stdout: "1\n"},
			{command: "no-such-command", exit: 127},
			{command: "if ; then", exit: 2},
			{command: "sleep 0.01 & wait $!; echo done", stdout: "done\n"},
			{command: "kill -TERM $BASHPID | cat; echo on", stdout: "on\n"},
		} {
			r := h.inWith("main", engine.ExecRequest{Shell: c.command, Stdin: []byte(c.stdin)})
			said(t, r, c.stdout, c.exit)
			if r.Shell.Restarted != "" || r.Shell.Ended {
				t.Errorf("%s: %+v", c.command, r.Shell)
			}
		}
	})
	t.Run("ItsEndIsTold", func(t *testing.T) {
		h := started(t)
		for command, exit := range map[string]int{"x=1; echo bye; exit 7": 7, "x=1; echo bye; set -e; false; echo no": 1, "x=1; echo bye; kill -KILL $$": 137} {
			r := h.in("main", command)
			said(t, r, "bye\n", exit)
			if !r.Shell.Ended || (r.Signal == "SIGKILL") != (exit == 137) {
				t.Errorf("%s: %+v", command, r)
			}
			s, err := h.code.Shell(t.Context(), alice, "box", "main")
			if err != nil || !strings.Contains(s.Ended, "bash ended") {
				t.Errorf("%s: %+v, %v", command, s, err)
			}
			r = h.in("main", "echo [$x]")
			said(t, r, "[]\n", 0)
			if !strings.Contains(r.Shell.Restarted, "bash ended") {
				t.Errorf("%s: the next one was told %q", command, r.Shell.Restarted)
			}
		}
		h.in("main", "x=here")
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if r := h.in("main", "echo [$x]"); string(r.Stdout) != "[]\n" || r.Shell.Restarted == "" {
			t.Errorf("after a stop: %q %+v", r.Stdout, r.Shell)
		}
	})
	t.Run("ATimeoutEndsTheCommandAndNotTheShell", func(t *testing.T) {
		h := started(t)
		h.in("main", "x=kept; sleep 1000 & old=$!")
		for _, command := range []string{
			"echo in; sleep 1000; echo no",
			"echo in; while :; do :; done",
			"echo in; sh -c 'trap \"\" INT; sleep 1000; sleep 1000'",
		} {
			r := h.inWith("main", engine.ExecRequest{Shell: command, Timeout: 300 * time.Millisecond})
			if string(r.Stdout) != "in\n" || r.ExitCode != 130 || r.Cause != sandbox.CauseTimeout || r.Signal != "SIGINT" || r.Shell.Ended {
				t.Errorf("%s: %q %+v", command, r.Stdout, r)
			}
			said(t, h.in("main", "echo $x; kill -0 $old && echo old"), "kept\nold\n", 0)
		}
		r := h.inWith("main", engine.ExecRequest{Shell: "trap '' INT; while :; do :; done", Timeout: 100 * time.Millisecond})
		if r.ExitCode != 137 || r.Cause != sandbox.CauseTimeout || !r.Shell.Ended {
			t.Errorf("one that cannot be ended without it: %+v", r)
		}
		if r := h.in("main", "echo [$x]"); string(r.Stdout) != "[]\n" || r.Shell.Restarted == "" {
			t.Errorf("after it: %q %+v", r.Stdout, r.Shell)
		}
	})
	t.Run("OneThatIsNotWaitedForIsFoundByItsId", func(t *testing.T) {
		h := started(t)
		r := h.inWith("main", engine.ExecRequest{Shell: "echo one; read -t 0.5 < <(sleep 1); echo two; exit 4", Wait: 250 * time.Millisecond})
		if !r.Running || string(r.Stdout) != "one\n" {
			t.Fatalf("%q %+v", r.Stdout, r)
		}
		rec, err := h.engine.WaitProcess(t.Context(), alice, "box", r.ProcessID, 0)
		if err != nil || rec.Result != nil || !strings.HasPrefix(rec.Shell, "echo one") {
			t.Errorf("its record: %+v, %v", rec, err)
		}
		if rec, err = h.engine.WaitProcess(t.Context(), alice, "box", r.ProcessID, time.Minute); err != nil || rec.Result == nil || rec.Result.ExitCode != 4 {
			t.Errorf("its record at last: %+v, %v", rec, err)
		}
		again, err := h.code.ShellCommand(t.Context(), alice, "box", "main", r.ProcessID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		said(t, again, "one\ntwo\n", 4)
		if !again.Shell.Ended {
			t.Errorf("%+v", again.Shell)
		}
		_, err = h.code.ShellCommand(t.Context(), alice, "box", "main", sandbox.NewProcessID(), 0)
		wantCode(t, err, fault.NotFound)
	})
	t.Run("CommandsAreKilledAndInterruptedAlone", func(t *testing.T) {
		h := started(t)
		h.in("main", "x=kept")
		start := func(command string) string {
			t.Helper()
			r := h.inWith("main", engine.ExecRequest{Shell: command, Wait: 100 * time.Millisecond})
			if !r.Running {
				t.Fatalf("%s: %+v", command, r)
			}
			return r.ProcessID
		}
		id := start("sh -c 'trap \"\" INT TERM; sleep 1000; sleep 1000'")
		if err := h.engine.KillProcess(t.Context(), alice, "box", id); err != nil {
			t.Fatal(err)
		}
		id = start("sleep 1000")
		if err := h.engine.SignalProcess(t.Context(), alice, "box", id, syscall.SIGINT, false); err != nil {
			t.Fatal(err)
		}
		if r, err := h.code.ShellCommand(t.Context(), alice, "box", "main", id, time.Minute); err != nil || r.ExitCode != 130 || r.Signal != "SIGINT" {
			t.Errorf("%+v, %v", r, err)
		}
		wantCode(t, h.engine.SignalProcess(t.Context(), alice, "box", id, syscall.SIGINT, false), fault.State)
		id = start("sleep 1000")
		if err := h.engine.SignalProcess(t.Context(), alice, "box", id, syscall.SIGUSR1, false); err != nil {
			t.Fatal(err)
		}
		if r, err := h.code.ShellCommand(t.Context(), alice, "box", "main", id, time.Minute); err != nil || r.ExitCode != 128+int(syscall.SIGUSR1) || r.Shell.Ended {
			t.Errorf("%+v, %v", r, err)
		}
		id = start("sleep 1000")
		if err := h.code.InterruptShell(t.Context(), alice, "box", "main"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.code.ShellCommand(t.Context(), alice, "box", "main", id, time.Minute); err != nil {
			t.Fatal(err)
		}
		wantCode(t, h.code.InterruptShell(t.Context(), alice, "box", "main"), fault.State)
		said(t, h.in("main", "echo $x"), "kept\n", 0)
	})
	t.Run("StreamsInOrderAndGoesOnWithoutItsCaller", func(t *testing.T) {
		h := started(t)
		var text strings.Builder
		var last int64
		r, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "seq 1 20000; echo err >&2"}, func(f sandbox.Frame) error {
			if f.Seq != last+1 {
				return fmt.Errorf("frame %d comes after %d", f.Seq, last)
			}
			if last = f.Seq; f.Stream == sandbox.Stdout {
				text.Write(f.Data)
			}
			return nil
		})
		if err != nil || strings.Count(text.String(), "\n") != 20000 || r.StdoutBytes != int64(text.Len()) || r.StderrBytes != 4 || r.Stdout != nil {
			t.Errorf("%d bytes, %+v, %v", text.Len(), r, err)
		}
		broken := errors.New("the sink is broken")
		r, err = h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "echo a; sleep 0.2; y=went-on"}, func(sandbox.Frame) error { return broken })
		if !errors.Is(err, broken) || r.ProcessID == "" {
			t.Errorf("%+v, %v", r, err)
		}
		said(t, h.in("main", "echo $y"), "went-on\n", 0)
		ctx, cancel := context.WithCancel(t.Context())
		_, err = h.code.ShellExec(ctx, alice, "box", "main", engine.ExecRequest{Shell: "echo a; sleep 1000; y=never", KillOnDisconnect: true}, func(sandbox.Frame) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		said(t, h.in("main", "echo $y"), "went-on\n", 0)
	})
	t.Run("OutputHasNoEnd", func(t *testing.T) {
		h := started(t)
		h.in("main", "x=kept")
		const most = 100 << 20 // more than any log keeps
		got := 0
		r, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: fmt.Sprintf("head -c %d /dev/zero", most), MaxStdout: engine.MaxStreamed}, func(f sandbox.Frame) error {
			got += len(f.Data)
			return nil
		})
		if err != nil || got > engine.MaxStreamed || got < 16<<20 || !r.StdoutTruncated || r.ExitCode != 0 || r.StdoutBytes > most {
			t.Errorf("%d bytes, %+v, %v", got, r, err)
		}
		h.restart()
		kept := h.inWith("main", engine.ExecRequest{Shell: "echo $x; yes | head -c 3000000"})
		if len(kept.Stdout) != engine.DefaultOutput || !strings.HasPrefix(string(kept.Stdout), "kept\ny\n") || !kept.StdoutTruncated || kept.StdoutBytes != 3000005 || kept.Shell.Restarted != "" {
			t.Errorf("%d bytes, %+v", len(kept.Stdout), kept.Shell)
		}
	})
	t.Run("CommandsOfManyComeInTurn", func(t *testing.T) {
		h := started(t)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "n=$((n+1)); m=$n; sleep 0.01; [ $m = $n ] || broken=1"}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		said(t, h.in("main", "echo $n [$broken]"), "20 []\n", 0)
		r := h.inWith("main", engine.ExecRequest{Shell: "sleep 1000", Wait: 50 * time.Millisecond})
		_, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "n=run", Wait: 50 * time.Millisecond}, nil)
		wantCode(t, err, fault.State)
		if err := h.engine.KillProcess(t.Context(), alice, "box", r.ProcessID); err != nil {
			t.Fatal(err)
		}
		said(t, h.in("main", "echo $n"), "20\n", 0)
	})
	t.Run("OutlivesTheServer", func(t *testing.T) {
		h := started(t)
		id := h.in("main", "cd /usr; x=kept; f() { echo f $x; }").Shell.ID
		h.restart()
		r := h.in("main", "f; pwd")
		said(t, r, "f kept\n/usr\n", 0)
		if r.Shell.Restarted != "" || r.Shell.ID != id {
			t.Errorf("%+v", r.Shell)
		}
		running := h.inWith("main", engine.ExecRequest{Shell: "echo before; sleep 0.7; echo after; y=$x; (exit 6)", Wait: 200 * time.Millisecond})
		if !running.Running {
			t.Fatalf("%+v", running)
		}
		h.restart()
		done, err := h.code.ShellCommand(t.Context(), alice, "box", "main", running.ProcessID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		said(t, done, "before\nafter\n", 6)
		said(t, h.in("main", "echo $y"), "kept\n", 0)
		var kinds []sandbox.EventType
		for _, ev := range h.events() {
			if ev.ProcessID == running.ProcessID {
				kinds = append(kinds, ev.Type)
				if !ev.Done || ev.ExitCode != 6 || ev.Actor != "alice" || ev.ContextID != id || ev.StdoutBytes != 13 {
					t.Errorf("its event: %+v", ev)
				}
			}
		}
		if !slices.Equal(kinds, []sandbox.EventType{sandbox.EventExec}) {
			t.Errorf("its events: %v", kinds)
		}
	})
	t.Run("OutlivesManyServers", func(t *testing.T) {
		h := started(t)
		h.in("main", "x=kept")
		r := h.inWith("main", engine.ExecRequest{Shell: "for i in $(seq 1 1500); do echo $i; echo $i >&2; sleep 0.001; done", Wait: time.Millisecond})
		for range 10 {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // wherever it is
			h.restart()
		}
		done, err := h.code.ShellCommand(t.Context(), alice, "box", "main", r.ProcessID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for i := range 1500 {
			fmt.Fprintln(&want, i+1)
		}
		said(t, done, want.String(), 0)
		if string(done.Stderr) != want.String() {
			t.Errorf("stderr: %d bytes", len(done.Stderr))
		}
		said(t, h.in("main", "echo $x"), "kept\n", 0)
	})
	t.Run("IsMadeListedAndDeleted", func(t *testing.T) {
		h := started(t)
		h.exec("box", "mkdir sub")
		s, err := h.code.CreateShell(t.Context(), alice, "box", code.ShellRequest{Name: "dev.1", Cwd: "sub", Env: map[string]string{"E": "mine"}})
		if err != nil || s.Name != "dev.1" || s.Status != code.ContextIdle {
			t.Fatalf("%+v, %v", s, err)
		}
		said(t, h.in("dev.1", "basename $PWD; echo $E"), "sub\nmine\n", 0)
		_, err = h.code.CreateShell(t.Context(), alice, "box", code.ShellRequest{Name: "dev.1"})
		wantCode(t, err, fault.Exists)
		if s, err = h.code.CreateShell(t.Context(), alice, "box", code.ShellRequest{}); err != nil || s.Name == "" {
			t.Errorf("%+v, %v", s, err)
		}
		for i := range code.MaxShells - 2 {
			h.in(fmt.Sprint("n", i), "true")
		}
		_, err = h.code.ShellExec(t.Context(), alice, "box", "more", engine.ExecRequest{Shell: "true"}, nil)
		wantCode(t, err, fault.Exhausted)
		if all, err := h.code.Shells(t.Context(), alice, "box"); err != nil || len(all) != code.MaxShells || all[0].Name != "dev.1" || all[0].State != nil {
			t.Errorf("%d: %+v, %v", len(all), all, err)
		}
		if all := h.contexts("box"); len(all) != 0 {
			t.Errorf("they are among the contexts of code: %+v", all)
		}
		running := h.inWith("n0", engine.ExecRequest{Shell: "sleep 1000", Wait: 50 * time.Millisecond})
		if err := h.code.DeleteShell(t.Context(), alice, "box", "n0"); err != nil {
			t.Fatal(err)
		}
		h.await("the end of the command of a deleted shell", func() bool {
			for _, ev := range h.events() {
				if ev.ProcessID == running.ProcessID {
					return ev.Done && ev.ExitCode == 137
				}
			}
			return false
		})
		wantCode(t, h.code.DeleteShell(t.Context(), alice, "box", "n0"), fault.NotFound)
		_, err = h.code.Shell(t.Context(), alice, "box", "n0")
		wantCode(t, err, fault.NotFound)
		_, err = h.code.Shell(t.Context(), mary, "box", "n1")
		wantCode(t, err, fault.NotFound)
		if r := h.in("n0", "echo new"); string(r.Stdout) != "new\n" || r.Shell.Restarted != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("HasAnyPrintableName", func(t *testing.T) {
		h := started(t)
		names := []string{"-x", "a b", "ü", "it's \"quoted\" $(id)", "?#%2F", "...", strings.Repeat("語", 64)}
		for i, name := range names {
			h.in(name, fmt.Sprint("x=", i))
		}
		for i, name := range names {
			said(t, h.in(name, "echo $x"), fmt.Sprintln(i), 0)
			if s, err := h.code.Shell(t.Context(), alice, "box", name); err != nil || s.Name != name {
				t.Errorf("%q: %+v, %v", name, s, err)
			}
		}
	})
	t.Run("AsManyAsThereMayBeRunAtOnce", func(t *testing.T) {
		h := started(t)
		var all sync.WaitGroup
		for i := range code.MaxShells {
			all.Go(func() {
				name := fmt.Sprint("n", i)
				for j := range 2 {
					r, err := h.code.ShellExec(context.WithoutCancel(t.Context()), alice, "box", name, engine.ExecRequest{Shell: "x=${x-0}; echo $x; x=1"}, nil)
					if err != nil || string(r.Stdout) != fmt.Sprintln(j) {
						t.Errorf("%s: %q, %v", name, r.Stdout, err)
					}
				}
			})
		}
		all.Wait()
	})
	t.Run("ChecksItsFields", func(t *testing.T) {
		h := started(t)
		for _, name := range []string{"", ".", "..", "a/b", strings.Repeat("ü", 65), "a\tb", "\x1b", "a\xffb", "\u202e", "\u00a0"} {
			_, err := h.code.ShellExec(t.Context(), alice, "box", name, engine.ExecRequest{Shell: "true"}, nil)
			wantCode(t, err, fault.Invalid)
			if name != "" {
				_, err = h.code.CreateShell(t.Context(), alice, "box", code.ShellRequest{Name: name})
				wantCode(t, err, fault.Invalid)
			}
		}
		for _, r := range []engine.ExecRequest{
			{}, {Shell: "a", Argv: []string{"b"}}, {Shell: "a", Cwd: "/usr"}, {Shell: "a", User: "bin"},
			{Shell: "a", Stdin: make([]byte, code.MaxShellStdin+1)}, {Shell: "a", StreamStdin: true, Stdin: []byte("x")}, {Shell: "a", Timeout: -1},
		} {
			_, err := h.code.ShellExec(t.Context(), alice, "box", "main", r, nil)
			wantCode(t, err, fault.Invalid)
		}
		if all, err := h.code.Shells(t.Context(), alice, "box"); err != nil || len(all) != 0 {
			t.Errorf("a refused command made %+v, %v", all, err)
		}
		reader := alice
		reader.Scopes = alice.Scopes[:1]
		_, err := h.code.ShellExec(t.Context(), reader, "box", "main", engine.ExecRequest{Shell: "true"}, nil)
		wantCode(t, err, fault.Denied)
	})
}
