// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testProcess(t *testing.T, open func(*testing.T) *agent.Client) {
	t.Run("StreamsComeApartAndNumbered", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "echo out; echo err >&2; echo again"})
		if out.stdout != "out\nagain\n" || out.stderr != "err\n" {
			t.Errorf("got %q and %q", out.stdout, out.stderr)
		}
		if out.ExitCode != 0 || out.Signal != "" || out.Cause != "" || out.StdoutBytes != 10 || out.StderrBytes != 4 {
			t.Errorf("result: %+v", out.Result)
		}
		for i, f := range out.frames {
			if f.Seq != int64(i+1) {
				t.Errorf("frame %d has the number %d", i, f.Seq)
			}
		}
	})
	t.Run("StreamsAreOneWhereThatIsAskedFor", func(t *testing.T) {
		c := open(t)
		out := run(t, c, agent.Command{Shell: `echo a; echo b >&2; echo c; echo secret >&2; test "$(readlink /proc/$$/fd/1)" = "$(readlink /proc/$$/fd/2)"`, Merge: true, Redact: [][]byte{[]byte("secret")}})
		if out.stdout != "a\nb\nc\n******\n" || out.stderr != "" || out.ExitCode != 0 || out.StdoutBytes != 13 || out.StderrBytes != 0 {
			t.Errorf("got %q and %q, %+v", out.stdout, out.stderr, out.Result)
		}
		out = run(t, c, agent.Command{Argv: []string{"/nosuch"}, Merge: true})
		if out.ExitCode != 127 || !strings.Contains(out.stdout, "/nosuch") || out.stderr != "" {
			t.Errorf("one that never ran: %q and %q, %+v", out.stdout, out.stderr, out.Result)
		}
		out = run(t, c, agent.Command{Shell: `echo 12345 >&2; echo 67890`, Merge: true, MaxStdout: 8, MaxStderr: 1})
		if out.stdout != "12345\n67" || !out.StdoutTruncated || out.StderrTruncated {
			t.Errorf("one that is cut: %q, %+v", out.stdout, out.Result)
		}
	})
	t.Run("ExitCodeIsPassedOn", func(t *testing.T) {
		if out := run(t, open(t), agent.Command{Shell: "exit 3"}); out.ExitCode != 3 || out.Cause != "" {
			t.Errorf("result: %+v", out.Result)
		}
	})
	t.Run("SignalIsNamed", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "kill -SEGV $$"})
		if out.ExitCode != 139 || out.Signal != "SIGSEGV" || out.Cause != "" {
			t.Errorf("result: %+v", out.Result)
		}
	})
	t.Run("KillOfUnknownOriginIsSaid", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "kill -KILL $$"})
		if out.ExitCode != 137 || out.Signal != "SIGKILL" || out.Cause != sandbox.CauseKilled || out.CauseDetail == "" {
			t.Errorf("result: %+v", out.Result)
		}
	})
	t.Run("ArgumentsAreNotInterpreted", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "*", "", "ü"}})
		if want := "a b|$HOME|*||ü|"; out.stdout != want {
			t.Errorf("got %q, want %q", out.stdout, want)
		}
	})
	t.Run("MissingProgramIs127AsInAShell", func(t *testing.T) {
		c := open(t)
		for _, argv := range [][]string{{"no-such-program"}, {"/no/such/program"}, {"./no-such-program", "arg"}} {
			out := run(t, c, agent.Command{Argv: argv})
			if out.ExitCode != 127 || !strings.Contains(out.stderr, argv[0]) || out.Cause != "" {
				t.Errorf("%q: %+v, stderr %q", argv, out.Result, out.stderr)
			}
		}
		out := run(t, c, agent.Command{Shell: "no-such-program"})
		if out.ExitCode != 127 {
			t.Errorf("shell: %+v", out.Result)
		}
	})
	t.Run("FileThatCannotBeExecutedIs126", func(t *testing.T) {
		c := open(t)
		put(t, c, "plain.txt", "no program")
		out := run(t, c, agent.Command{Argv: []string{"./plain.txt"}})
		if out.ExitCode != 126 || out.stderr == "" {
			t.Errorf("%+v, stderr %q", out.Result, out.stderr)
		}
		put(t, c, "script", "#!/no/such/interpreter\n")
		sh(t, c, "chmod +x script")
		out = run(t, c, agent.Command{Argv: []string{"./script"}})
		if out.ExitCode != 127 || !strings.Contains(out.stderr, "interpreter") {
			t.Errorf("%+v, stderr %q", out.Result, out.stderr)
		}
	})
	t.Run("CwdIsTheWorkspaceOrAsGiven", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p sub/deep && echo here > sub/deep/f")
		for _, cwd := range []string{"sub/deep", "/workspace/sub/deep", "/workspace/sub/deep/"} {
			if out := run(t, c, agent.Command{Argv: []string{"cat", "f"}, Cwd: cwd}); out.stdout != "here\n" {
				t.Errorf("cwd %q: %+v %q", cwd, out.Result, out.stderr)
			}
		}
	})
	t.Run("MissingCwdIsInvalid", func(t *testing.T) {
		c := open(t)
		put(t, c, "file", "")
		for _, cwd := range []string{"/no/such/dir", "nowhere", "file"} {
			_, err := c.Start(within(t), agent.Command{ID: sandbox.NewProcessID(), Shell: "true", Cwd: cwd})
			wantCode(t, err, fault.Invalid)
			if f := fault.As(err).Fields; len(f) != 1 || f[0].Name != "cwd" {
				t.Errorf("fields: %v", f)
			}
		}
	})
	t.Run("EnvironmentIsLaidOver", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: `echo "$A|$LANG|$PATH"`, Env: map[string]string{"A": "x = y", "LANG": "C"}})
		if !strings.HasPrefix(out.stdout, "x = y|C|/") {
			t.Errorf("got %q", out.stdout)
		}
	})
	t.Run("OwnStreamsCanBeOpenedByName", func(t *testing.T) {
		if got := sh(t, open(t), "echo hi > /dev/stdout; echo ho > /dev/stderr"); got != "hi\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("IDThatExistsIsRefused", func(t *testing.T) {
		c := open(t)
		id := sandbox.NewProcessID()
		run(t, c, agent.Command{ID: id, Shell: "echo first"})
		_, err := c.Start(within(t), agent.Command{ID: id, Shell: "echo second"})
		wantCode(t, err, fault.Exists)
		p, err := c.Attach(within(t), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if out := collect(t, p); out.stdout != "first\n" {
			t.Errorf("the first one's output: %q", out.stdout)
		}
	})
	t.Run("OneHundredAtOnce", func(t *testing.T) {
		c := open(t)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				out := run(t, c, agent.Command{Shell: fmt.Sprintf("echo %d; echo e%d >&2; exit %d", i, i, i%7)})
				if out.stdout != fmt.Sprintf("%d\n", i) || out.stderr != fmt.Sprintf("e%d\n", i) || out.ExitCode != i%7 {
					t.Errorf("%d: %q %q %+v", i, out.stdout, out.stderr, out.Result)
				}
			})
		}
		wg.Wait()
		recs, err := c.Processes(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(recs) != 100 {
			t.Errorf("%d processes are on record, want 100", len(recs))
		}
	})
	t.Run("RunningTellsOfThoseThatHaveNotEnded", func(t *testing.T) {
		c := open(t)
		run(t, c, agent.Command{Shell: "true"})
		var want []string
		for range 2 {
			want = append(want, start(t, c, agent.Command{Shell: "read x", StreamStdin: true}).ID())
		}
		recs, err := c.Running(within(t))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rec := range recs {
			got = append(got, rec.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if all, err := c.Processes(within(t)); err != nil || len(all) != 3 {
			t.Errorf("all: %d, %v, want 3", len(all), err)
		}
	})
	t.Run("RecordTellsWhatRanAndHowItEnded", func(t *testing.T) {
		c := open(t)
		before := time.Now().Add(-time.Minute)
		p := start(t, c, agent.Command{Argv: []string{"sh", "-c", "echo out; read x; exit 4"}, StreamStdin: true})
		await(t, p, func(s string) bool { return s == "out\n" })
		rec, err := c.Process(within(t), p.ID())
		if err != nil {
			t.Fatal(err)
		}
		if rec.State != sandbox.ProcessRunning || rec.Result != nil || rec.PID < 1 || rec.LastSeq != 1 || rec.StartedAt.Before(before) {
			t.Errorf("while it runs: %+v", rec)
		}
		if len(rec.Argv) != 3 || rec.Argv[2] != "echo out; read x; exit 4" || rec.Cwd != "/workspace" {
			t.Errorf("command: %+v", rec)
		}
		if err := p.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		out := collect(t, p)
		rec, err = c.Process(within(t), p.ID())
		if err != nil {
			t.Fatal(err)
		}
		if rec.State != sandbox.ProcessExited || rec.Result == nil || rec.Result.ExitCode != 4 || !rec.Result.EndedAt.Equal(out.EndedAt) {
			t.Errorf("when it has ended: %+v %+v", rec, rec.Result)
		}
		_, err = c.Process(within(t), sandbox.NewProcessID())
		wantCode(t, err, fault.NotFound)
	})
	t.Run("PingCounts", func(t *testing.T) {
		c := open(t)
		info, err := c.Ping(within(t))
		if err != nil || info.PID < 1 || info.Processes != 0 {
			t.Errorf("%+v %v", info, err)
		}
	})
}

func testStdin(t *testing.T, open func(*testing.T) *agent.Client) {
	t.Run("NoneIsAtItsEnd", func(t *testing.T) {
		if out := run(t, open(t), agent.Command{Argv: []string{"cat"}}); out.stdout != "" || out.ExitCode != 0 {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
	})
	for _, n := range []int{1, 4096, 4097, 65536, 1 << 20, agent.MaxStdin} {
		t.Run(fmt.Sprintf("Of%dBytesArrivesWhole", n), func(t *testing.T) {
			in := make([]byte, n)
			for i := range in {
				in[i] = byte(i * i >> 3)
			}
			sum := sha256.Sum256(in)
			out := run(t, open(t), agent.Command{Argv: []string{"sha256sum"}, Stdin: in})
			if !strings.HasPrefix(out.stdout, hex.EncodeToString(sum[:])) {
				t.Errorf("got %q %+v", out.stdout, out.Result)
			}
		})
	}
	t.Run("ThatIsNotReadHoldsUpNothing", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Argv: []string{"true"}, Stdin: make([]byte, 1<<20)})
		if out.ExitCode != 0 {
			t.Errorf("%+v", out.Result)
		}
	})
	t.Run("StreamIsAnsweredAsItComes", func(t *testing.T) {
		p := start(t, open(t), agent.Command{Argv: []string{"cat"}, StreamStdin: true})
		for _, line := range []string{"one\n", "two\n"} {
			if _, err := io.WriteString(p, line); err != nil {
				t.Fatal(err)
			}
			await(t, p, func(s string) bool { return s == line })
		}
		if err := p.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, p); out.ExitCode != 0 {
			t.Errorf("%+v", out.Result)
		}
	})
	t.Run("StreamOutlivesItsConnection", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Argv: []string{"cat"}, StreamStdin: true})
		if _, err := io.WriteString(p, "one\n"); err != nil {
			t.Fatal(err)
		}
		await(t, p, func(s string) bool { return s == "one\n" })
		_ = p.Close()
		q, err := c.Attach(within(t), p.ID(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := io.WriteString(q, "two\n"); err != nil {
			t.Fatal(err)
		}
		await(t, q, func(s string) bool { return s == "one\ntwo\n" })
		if err := q.CloseStdin(); err != nil {
			t.Fatal(err)
		}
		if out := collect(t, q); out.ExitCode != 0 {
			t.Errorf("%+v", out.Result)
		}
	})
}

func testOutput(t *testing.T, open func(*testing.T) *agent.Client) {
	t.Run("OfAnyBytesIsUnchanged", func(t *testing.T) {
		c := open(t)
		out := run(t, c, agent.Command{Shell: "head -c 300000 /dev/urandom | tee copy"})
		if out.stdout != get(t, c, "copy") {
			t.Error("the output is not what was written")
		}
	})
	t.Run("OverTheCapIsCountedAndCut", func(t *testing.T) {
		const flood = 64 << 20
		out := run(t, open(t), agent.Command{
			Shell: fmt.Sprintf("head -c %d /dev/zero; echo done >&2", flood), MaxStdout: 1 << 20,
		})
		if len(out.stdout) != 1<<20 || out.StdoutBytes != flood || !out.StdoutTruncated {
			t.Errorf("kept %d of %d, truncated %v", len(out.stdout), out.StdoutBytes, out.StdoutTruncated)
		}
		if out.stderr != "done\n" || out.StderrTruncated || out.ExitCode != 0 {
			t.Errorf("stderr %q, %+v", out.stderr, out.Result)
		}
	})
	t.Run("InManySmallPiecesIsWhole", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done"})
		var want bytes.Buffer
		for i := range 2000 {
			fmt.Fprintln(&want, i)
		}
		if out.stdout != want.String() {
			t.Errorf("got %d bytes, want %d", len(out.stdout), want.Len())
		}
	})
	t.Run("OfABackgroundChildDoesNotHoldTheResult", func(t *testing.T) {
		c := open(t)
		p := start(t, c, agent.Command{Shell: "(sleep 1000; echo late) & echo hi"})
		out := collect(t, p)
		if out.stdout != "hi\n" || out.ExitCode != 0 {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
		if err := c.Kill(within(t), p.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
		rec, err := c.Process(within(t), p.ID())
		if err != nil || rec.Result == nil || rec.Result.Cause != "" {
			t.Errorf("its result was changed by a later kill: %+v %v", rec.Result, err)
		}
	})
	t.Run("OfABackgroundChildIsStillLogged", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkfifo go")
		out := run(t, c, agent.Command{ID: "abcdefgh12345678", Shell: "(read x < go; echo late; echo x > go) & echo hi"})
		if out.stdout != "hi\n" {
			t.Fatalf("%q", out.stdout)
		}
		sh(t, c, "echo x > go; read x < go") // it has written
		for {
			p, err := c.Attach(within(t), "abcdefgh12345678", 0)
			if err != nil {
				t.Fatal(err)
			}
			got := collect(t, p)
			_ = p.Close()
			if got.stdout == "hi\nlate\n" {
				break
			}
			if got.stdout != "hi\n" {
				t.Fatalf("got %q", got.stdout)
			}
			if t.Context().Err() != nil {
				t.Fatal("it never came")
			}
		}
	})
}
