// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/agent/server"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// diskOf is what the files in dir take of the disk.
func diskOf(t *testing.T, dir string) (used int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err != nil || d.IsDir() || unix.Lstat(path, &st) != nil { // a log that is let go of meanwhile
			return nil
		}
		used += st.Blocks * 512
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// writes is a command that writes so many bytes, says so on stderr, makes a file that awaitWritten
// looks for, and then waits for input.
func writes(bytes int) agent.Command {
	id := sandbox.NewProcessID()
	return agent.Command{
		ID: id, Shell: fmt.Sprintf("head -c %d /dev/urandom; echo written >&2; : > written-%s; read x; echo end", bytes, id),
		StreamStdin: true, MaxStdout: agent.MaxOutput,
	}
}

// awaitWritten waits until the command of writes has written all. It does not wait for what stderr
// says: that can come before the last of stdout, and be cut from the log before it is read.
func (p *plain) awaitWritten(t *testing.T, q *agent.Process) {
	t.Helper()
	mark := filepath.Join(p.dir, "workspace", "written-"+q.ID())
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(mark); err == nil {
			return
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("process %s did not write all of its output within 2 minutes", q.ID())
		}
	}
}

func TestLogsOfRunningProcessesHaveOneBudget(t *testing.T) {
	const most, each, processes = 16 << 20, 6 << 20, 12
	p := newPlain(t, func(o *server.Options) { o.MaxLogBytes = most })
	var running []*agent.Process
	for range processes {
		q, err := p.client.Start(t.Context(), writes(each))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		p.awaitWritten(t, q)
		running = append(running, q)
		if used := diskOf(t, p.log); used > most {
			t.Fatalf("the logs of %d processes take %d bytes of %d", len(running), used, most)
		}
	}
	t.Run("AnotherCommandHasRoomForItsOutput", func(t *testing.T) {
		// Logs are cut while they have five eighths of the budget, the largest first: one
		// with less than its share of these, what it asks ahead included, never is. The last of
		// what was written may still be on its way to its log, and that to be cut.
		const bytes = 300_000
		for began := time.Now(); ; {
			o := runIt(t, p.client, agent.Command{Shell: fmt.Sprintf("head -c %d /dev/zero", bytes)})
			if o.err == nil && len(o.out) == bytes && !o.res.StdoutTruncated {
				return
			}
			if o.err != nil || o.res.StdoutCut != sandbox.CutLogs || time.Since(began) > time.Minute {
				t.Fatalf("%d bytes, %+v, %v", len(o.out), o.res, o.err)
			}
		}
	})
	for i, q := range running {
		if _, err := q.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		o := follow(q)
		if o.err != nil || !strings.HasSuffix(o.out, "end\n") || o.res.StdoutBytes != each+4 {
			t.Errorf("process %d: %+v, %v", i, o.res, o.err)
		}
		// Who reads it later is told that it is not whole, and gets the end of it.
		a, err := p.client.Attach(t.Context(), q.ID(), 0)
		if err != nil {
			if fault.Is(err, fault.NotFound) { // its turn to go came already
				continue
			}
			t.Fatal(err)
		}
		later := follow(a)
		if later.err != nil || !strings.HasSuffix(later.out, "end\n") || len(later.out) < each && !later.res.StdoutTruncated {
			t.Errorf("process %d, later: %d bytes, %+v, %v", i, len(later.out), later.res, later.err)
		}
		// On a busy machine a log may be cut too late for another to grow.
		if cut := later.res.StdoutCut; len(later.out) < each && cut != sandbox.CutRolled && cut != sandbox.CutLogs {
			t.Errorf("process %d is cut for %q", i, cut)
		}
	}
	awaitIdle(t, p.client)
	if used := diskOf(t, p.log); used > most {
		t.Errorf("at the end the logs take %d bytes of %d", used, most)
	}
}

func TestAFollowerOfALogThatIsCutGetsWholeFrames(t *testing.T) {
	p := newPlain(t, func(o *server.Options) { o.MaxLogBytes = 4 << 20 })
	slow, err := p.client.Start(t.Context(), writes(2<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	first, err := slow.Next(t.Context()) // and then no more for a while
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		q, err := p.client.Start(t.Context(), writes(2<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		p.awaitWritten(t, q)
	}
	if _, err := slow.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	got, last := int64(len(first.Data)), first.Seq
	for {
		f, err := slow.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got, last = got+int64(len(f.Data)), f.Seq
	}
	res := slow.Result()
	if res.StdoutBytes != 2<<20+4 || !res.StdoutTruncated || last < 3 {
		t.Errorf("%d bytes up to frame %d came, and at the end %+v", got, last, res)
	}
}

func TestAStartWithoutRoomForItsLogIsRefused(t *testing.T) {
	p := newPlain(t, func(o *server.Options) { o.MaxLogBytes = 128 << 10 })
	var running []*agent.Process
	for {
		q, err := p.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "read x", StreamStdin: true})
		if err != nil {
			if !fault.Is(err, fault.Full) || fault.As(err).Disk != fault.SandboxDisk || fault.As(err).Remedy == "" {
				t.Fatalf("%v", err)
			}
			break
		}
		defer q.Close()
		if running = append(running, q); len(running) > 8 {
			t.Fatal("nine logs of 16 KiB fit in 128 KiB")
		}
	}
	if len(running) < 4 {
		t.Errorf("only %d processes were started", len(running))
	}
	if err := running[0].CloseStdin(); err != nil {
		t.Fatal(err)
	}
	if o := follow(running[0]); o.err != nil {
		t.Fatal(o.err)
	}
	for {
		if info, err := p.client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		} else if info.Processes < len(running) {
			break
		}
	}
	q, err := p.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"true"}})
	if err != nil {
		t.Fatalf("after one has ended: %v", err)
	}
	if o := follow(q); o.err != nil {
		t.Error(o.err)
	}
}

func TestStdinThatIsStoredCounts(t *testing.T) {
	const most = 16 << 20
	p := newPlain(t, func(o *server.Options) { o.MaxLogBytes = most })
	input := []byte(strings.Repeat("x", 5<<20))
	hold := func() (*agent.Process, error) { // it has the input and reads none of it
		return p.client.Start(t.Context(), agent.Command{
			ID: sandbox.NewProcessID(), Shell: "exec 3<&0; exec 0</dev/null; ls -lL /proc/$$/fd/3; sleep 1000", Stdin: input,
		})
	}
	var held []*agent.Process
	for {
		q, err := hold()
		if fault.Is(err, fault.Full) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		f, err := q.Next(t.Context())
		if err != nil || !strings.HasPrefix(string(f.Data), "p") {
			t.Fatalf("a file is given to a command: %q %v", f.Data, err) // the sandbox's root could write to it
		}
		if held = append(held, q); len(held) > most/len(input) {
			t.Fatalf("%d inputs of %d bytes are stored in %d", len(held), len(input), most)
		}
	}
	if len(held) == 0 {
		t.Fatal("none was stored")
	}
	for _, q := range held {
		if err := p.client.Kill(t.Context(), q.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
	}
	awaitIdle(t, p.client)
	o := runIt(t, p.client, agent.Command{Shell: "wc -c", Stdin: input})
	if o.err != nil || strings.TrimSpace(o.out) != fmt.Sprint(len(input)) {
		t.Errorf("%q %v", o.out, o.err)
	}
}

func TestABudgetThatShrinksLetsGoOfOldLogs(t *testing.T) {
	p := newPlain(t, nil)
	for range 5 {
		runIt(t, p.client, agent.Command{Shell: "head -c 1000000 /dev/zero"})
	}
	awaitIdle(t, p.client)
	const most = 2 << 20
	if err := p.client.LimitLogs(t.Context(), most); err != nil {
		t.Fatal(err)
	}
	if used := diskOf(t, p.log); used > most || used == 0 {
		t.Errorf("%d bytes of %d", used, most)
	}
	if err := p.client.LimitLogs(t.Context(), 1); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

func TestWhatAnAgentLeftInTheMiddleOfACutGoes(t *testing.T) {
	p := newPlain(t, nil)
	left := filepath.Join(p.log, "abc.log.cut")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	runIt(t, p.client, agent.Command{Argv: []string{"true"}})
	awaitIdle(t, p.client)
	if _, err := os.Lstat(left); err == nil {
		t.Error("it is there still")
	}
}

func TestTheLogOfAnAgentThatIsGoneIsRead(t *testing.T) {
	p := newPlain(t, nil)
	q, err := p.client.Start(t.Context(), writes(100_000))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	p.awaitWritten(t, q)
	var rec sandbox.Process
	for r := rec.Result; r == nil || r.StdoutBytes < 100_000 || r.StderrBytes == 0; r = rec.Result { // some of it is on its way
		dir, err := os.Open(p.log)
		if err != nil {
			t.Fatal(err)
		}
		rec, err = agent.ReadLog(dir, q.ID()) // as a kill would leave it
		_ = dir.Close()
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
	}
	r := rec.Result
	if r == nil || r.StdoutBytes != 100_000 || r.StderrBytes != int64(len("written\n")) || r.StdoutCut != sandbox.CutAgent || r.ExitCode != -1 {
		t.Errorf("%+v", rec)
	}
	dir, err := os.Open(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := os.Symlink("/etc/passwd", filepath.Join(p.log, "link.log")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"link", "none", "../x"} {
		if _, err := agent.ReadLog(dir, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
