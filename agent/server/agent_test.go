// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// outcome is all that a process gave.
type outcome struct {
	out string
	res sandbox.Result
	err error
}

// patience bounds what hangs in a broken agent.
const patience = 2 * time.Minute

func follow(p *agent.Process) (o outcome) {
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		f, err := p.Next(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.err = err
			}
			o.res = p.Result()
			return o
		}
		o.out += string(f.Data)
	}
}

func runIt(t *testing.T, c *agent.Client, cmd agent.Command) outcome {
	t.Helper()
	if cmd.ID == "" {
		cmd.ID = sandbox.NewProcessID()
	}
	p, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return follow(p)
}

// cutter is a connection that breaks after so many bytes in one direction.
type cutter struct {
	net.Conn
	read, write int
}

var errCut = errors.New("cut")

func (c *cutter) Read(b []byte) (int, error) {
	if c.read == 0 {
		_ = c.Conn.Close()
		return 0, errCut
	}
	n, err := c.Conn.Read(b[:min(len(b), c.read)])
	c.read -= n
	return n, err
}

func (c *cutter) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:min(len(b), c.write)])
	if c.write -= n; err == nil && n < len(b) {
		_ = c.Conn.Close()
		err = errCut
	}
	return n, err
}

func (p *plain) cutting(read, write int) *agent.Client {
	return agent.NewClient(func(ctx context.Context) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "unix", p.socket)
		return &cutter{nc, read, write}, err
	})
}

func TestCutConnections(t *testing.T) {
	t.Parallel()
	const plenty = 1 << 30
	t.Run("WhileReadingHarmNothing", func(t *testing.T) {
		p := newPlain(t, nil)
		whole := false
		for n := 0; !whole; n += 3 {
			id := sandbox.NewProcessID()
			cmd := agent.Command{ID: id, Shell: "echo one; echo two >&2; exit 3"}
			q, err := p.cutting(n, plenty).Start(t.Context(), cmd)
			if err == nil {
				o := follow(q)
				whole = o.err == nil
				err = o.err
			}
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("cut after %d bytes: %v", n, err)
			}
			a, err := p.client.Attach(t.Context(), id, 0)
			if fault.Is(err, fault.NotFound) {
				continue // the client left before its command was begun
			}
			if err != nil {
				t.Fatalf("attach after a cut at %d: %v", n, err)
			}
			o := follow(a)
			if o.err != nil || len(o.out) != 8 || o.res.ExitCode != 3 {
				t.Fatalf("after a cut at %d: %+v", n, o)
			}
		}
	})
	t.Run("WhileWritingStartNothingHalf", func(t *testing.T) {
		p := newPlain(t, nil)
		for n := 0; ; n += 7 {
			q, err := p.cutting(plenty, n).Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Argv: []string{"cat"}, Stdin: bytes.Repeat([]byte("in"), 50)})
			if err != nil {
				continue
			}
			if o := follow(q); len(o.out) != 100 {
				t.Errorf("%+v", o)
			}
			break
		}
		if recs, err := p.client.Processes(t.Context()); err != nil || len(recs) != 1 {
			t.Errorf("%d processes were started, want 1 (%v)", len(recs), err)
		}
	})
	t.Run("WhileUploadingLeaveTheOldFile", func(t *testing.T) {
		p := newPlain(t, nil)
		file := filepath.Join(p.dir, "workspace/f")
		if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		content := strings.Repeat("new", 100)
		for n := 0; ; n += 5 {
			_, _, err := p.cutting(plenty, n).WriteFile(t.Context(), "f", strings.NewReader(content), sandbox.WriteFileOptions{})
			if err == nil {
				break
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
				t.Fatalf("cut after %d bytes: the file holds %q (%v)", n, b, err)
			}
		}
		for began := time.Now(); ; { // what was cut off is cleaned up when the agent sees it
			entries, err := os.ReadDir(filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) == 1 {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("%d entries are left", len(entries))
			}
		}
		if b, _ := os.ReadFile(file); string(b) != content {
			t.Errorf("the file holds %q", b)
		}
	})
}

// talk sends bytes to an agent, and gives its frames.
func (p *plain) talk(t *testing.T, b []byte) (types []wire.Type, last []byte) {
	t.Helper()
	nc, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = nc.Write(b)
	r := wire.NewReader(nc)
	for {
		typ, payload, err := r.Next()
		if err != nil {
			return types, last
		}
		types, last = append(types, typ), bytes.Clone(payload)
	}
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	hello := slices.Clip(wire.AppendHello(nil))
	for name, tt := range map[string]struct {
		send []byte
		code fault.Code
	}{
		"WithoutHello":      {wire.Append(nil, wire.Call, []byte(`{"op":"ping"}`)), fault.Malformed},
		"OfAnotherProtocol": {wire.Append(nil, wire.Hello, []byte("GET / HTTP/1.1\r\n")), fault.Malformed},
		"OfANewerVersion":   {wire.Append(nil, wire.Hello, []byte(wire.Magic+"\x63")), fault.Unsupported},
		"WithoutCall":       {wire.Append(hello, wire.Data, []byte("x")), fault.Unsupported},
		"OfAnUnknownOp":     {wire.Append(hello, wire.Call, []byte(`{"op":"teleport"}`)), fault.Unsupported},
		"WithBrokenJSON":    {wire.Append(hello, wire.Call, []byte(`{"op":`)), fault.Malformed},
		"WithWrongJSON":     {wire.Append(hello, wire.Call, []byte(`{"op":5}`)), fault.Malformed},
		"WithATooLongFrame": {append(bytes.Clone(hello), byte(wire.Call), 0xff, 0xff, 0xff), fault.Malformed},
	} {
		t.Run("Call"+name+"IsRefused", func(t *testing.T) {
			types, last := p.talk(t, tt.send)
			var e wire.Error
			if len(types) != 1 || types[0] != wire.Failure || wire.Decode(last, &e) != nil || e.Code != string(tt.code) {
				t.Errorf("got %v %s", types, last)
			}
		})
	}
	t.Run("UnknownFieldsAndFramesAreSkipped", func(t *testing.T) {
		b := wire.Append(hello, 0xa0, []byte("whatever"))
		b = wire.Append(b, wire.Call, []byte(`{"op":"ping","colour":"blue"}`))
		if types, last := p.talk(t, b); len(types) != 2 || types[1] != wire.Done {
			t.Errorf("got %v %s", types, last)
		}
	})
}

func TestRecordsOutliveTheAgent(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	finished := sandbox.NewProcessID()
	want := runIt(t, p.client, agent.Command{ID: finished, Shell: "echo kept; exit 4"})
	q, err := p.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo begun; sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.srv.Close() // as cleanup will; twice is fine
	stop := p.serve(t, nil)
	defer stop()
	a, err := p.client.Attach(t.Context(), finished, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := follow(a); got.out != "kept\n" || got.res.ExitCode != 4 || !got.res.EndedAt.Equal(want.res.EndedAt) {
		t.Errorf("%+v", got)
	}
	rec, err := p.client.Process(t.Context(), q.ID())
	if err != nil || rec.State != sandbox.ProcessExited || rec.Result.Cause != sandbox.CauseStopped || rec.LastSeq != 1 {
		t.Errorf("%+v %v", rec, err)
	}
	_, err = p.client.Start(t.Context(), agent.Command{ID: finished, Shell: "true"})
	if !fault.Is(err, fault.Exists) {
		t.Errorf("its id was given away: %v", err)
	}
	_ = q.Close()
}

func TestTornLogs(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	id := sandbox.NewProcessID()
	want := runIt(t, p.client, agent.Command{ID: id, Shell: "echo one; echo two >&2; exit 3"}).out
	awaitIdle(t, p.client)
	whole, err := os.ReadFile(filepath.Join(p.log, id+".log"))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[int]string)
	for n := range len(whole) {
		torn := sandbox.NewProcessID()
		b := bytes.Clone(whole[:n])
		b = bytes.Replace(b, []byte(id), []byte(torn), 1)
		names[n] = torn
		// The sum of the first frame covers the id.
		if first := wire.HeaderLen + int(b1(b, 1))<<16 + int(b1(b, 2))<<8 + int(b1(b, 3)); n >= first && n > 4 {
			head := wire.AppendLog(nil, wire.LogStart, 0, at(b), b[wire.LogHeaderLen:first])
			copy(b, head)
		}
		if n%2 == 1 {
			b = append(b, make([]byte, 30)...) // a file system may leave zeros
		}
		if err := os.WriteFile(filepath.Join(p.log, torn+".log"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := int64(0)
	found := 0
	for n := range len(whole) {
		rec, err := p.client.Process(t.Context(), names[n])
		if fault.Is(err, fault.NotFound) {
			if found > 0 {
				t.Fatalf("cut at %d: it is lost, and was found in less", n)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found++
		if rec.State != sandbox.ProcessExited || rec.LastSeq < last || rec.LastSeq > 2 {
			t.Fatalf("cut at %d: %+v", n, rec)
		}
		last = rec.LastSeq
		if rec.Result.Cause == sandbox.CauseHost != (rec.Result.ExitCode == -1) {
			t.Errorf("cut at %d: %+v", n, rec.Result)
		}
		a, err := p.client.Attach(t.Context(), names[n], 0)
		if err != nil {
			t.Fatal(err)
		}
		if o := follow(a); o.err != nil || !strings.HasPrefix(want, o.out) || o.res.ExitCode != rec.Result.ExitCode {
			t.Fatalf("cut at %d: %+v", n, o)
		}
	}
	if last != 2 || found == 0 {
		t.Errorf("%d found, last frame %d", found, last)
	}
}

func b1(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0xff
}

func at(b []byte) time.Time {
	var n int64
	for _, c := range b[16:24] {
		n = n<<8 | int64(c)
	}
	return time.Unix(0, n)
}

func awaitIdle(t *testing.T, c *agent.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		info, err := c.Ping(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.Processes == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%d processes do not end", info.Processes)
		}
	}
}

func TestOldLogsAreRemoved(t *testing.T) {
	t.Parallel()
	p := newPlain(t, func(o *server.Options) { o.MaxFinished = 10 })
	var ids []string
	run := func(n int) {
		for range n {
			id := sandbox.NewProcessID()
			ids = append(ids, id)
			runIt(t, p.client, agent.Command{ID: id, Argv: []string{"true"}})
			awaitIdle(t, p.client)
		}
	}
	kept := func(surely int) {
		t.Helper()
		recs, err := p.client.Processes(t.Context())
		if err != nil || len(recs) != 10 {
			t.Fatalf("%d are kept, want 10 (%v)", len(recs), err)
		}
		for i, rec := range recs[10-surely:] {
			if want := ids[len(ids)-surely+i]; rec.ID != want {
				t.Errorf("number %d of the last %d is %s, want %s", i, surely, rec.ID, want)
			}
		}
	}
	run(25)
	kept(10)
	p.serve(t, func(o *server.Options) { o.MaxFinished = 10 })
	run(3)
	kept(3) // the order of those before is only as fine as the file system's clock
	const most = 200_000
	small := newPlain(t, func(o *server.Options) { o.MaxLogBytes = most })
	for range 20 {
		runIt(t, small.client, agent.Command{Shell: "head -c 20000 /dev/zero"})
		awaitIdle(t, small.client)
	}
	if used := diskOf(t, small.log); used > most || used < most/2 {
		t.Errorf("finished logs take %d bytes of %d", used, most)
	}
}

func TestARollingLogGivesItsDiskBack(t *testing.T) {
	t.Parallel()
	p := newPlain(t, nil)
	id := sandbox.NewProcessID()
	o := runIt(t, p.client, agent.Command{ID: id, Shell: "head -c 40000000 /dev/zero", MaxStdout: 100_000, MaxStderr: 1, Rolling: true})
	if o.err != nil || o.res.StdoutBytes != 40_000_000 || !o.res.StdoutTruncated {
		t.Fatalf("%+v %v", o.res, o.err)
	}
	awaitIdle(t, p.client)
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(p.log, id+".log"), &st); err != nil {
		t.Fatal(err)
	}
	if used := st.Blocks * 512; used > 2<<20 || st.Size < 40_000_000 {
		t.Errorf("it takes %d bytes of the disk, of %d", used, st.Size)
	}
	p.serve(t, nil) // another agent finds its way in it
	a, err := p.client.Attach(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	if o := follow(a); o.err != nil || len(o.out) < 100_000 || len(o.out) > 2<<20 || strings.Trim(o.out, "\x00") != "" {
		t.Errorf("%d bytes, %v", len(o.out), o.err)
	}
}

// smallLogs is an agent whose logs are on a small file system.
func smallLogs(t *testing.T) *plain {
	t.Helper()
	skiptest.WithoutRoot(t, "it mounts a small file system")
	p := &plain{dir: t.TempDir(), log: t.TempDir()}
	if err := unix.Mount("small", p.log, "tmpfs", 0, "size=64k,nr_inodes=20"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(p.log, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestFullDiskForLogs(t *testing.T) {
	t.Parallel()
	p := smallLogs(t)
	p.serve(t, nil)
	fill := filepath.Join(p.log, "fill")
	if err := os.WriteFile(fill, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	id := sandbox.NewProcessID()
	if o := runIt(t, p.client, agent.Command{ID: id, Shell: "echo still here; echo and there >&2; exit 5"}); o.err != nil || len(o.out) != 21 || o.res.ExitCode != 5 {
		t.Errorf("%+v", o)
	}
	o := runIt(t, p.client, agent.Command{Shell: "head -c 300000 /dev/zero"})
	if o.err != nil || !o.res.StdoutTruncated || o.res.StdoutBytes != 300000 || len(o.out) == 300000 || !strings.Contains(o.res.CauseDetail, "lost") {
		t.Errorf("%d bytes, %+v %v", len(o.out), o.res, o.err)
	}
	a, err := p.client.Attach(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	if o := follow(a); o.err != nil || (o.out != "and there\n" && o.out != "still here\n") || o.res.ExitCode != 5 {
		t.Errorf("attached while the disk is full: %+v", o)
	}
	for range 40 {
		runIt(t, p.client, agent.Command{Argv: []string{"true"}})
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	last := sandbox.NewProcessID()
	runIt(t, p.client, agent.Command{ID: last, Shell: "echo there is room"})
	rec, err := p.client.Process(t.Context(), last)
	if err != nil || rec.Result == nil || rec.Result.ExitCode != 0 {
		t.Errorf("%+v %v", rec, err)
	}
	awaitIdle(t, p.client) // what waited for room has found it, or is given up
}

// TestCloseOnAFullDisk leaves no log open whose end the disk refused.
func TestCloseOnAFullDisk(t *testing.T) {
	p := smallLogs(t)
	stop := p.serve(t, nil)
	if err := os.WriteFile(filepath.Join(p.log, "fill"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (logs []string) {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			path, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name()))
			if err == nil && strings.HasPrefix(path, p.log+"/") {
				logs = append(logs, path)
			}
		}
		return logs
	}
	for range 3 {
		runIt(t, p.client, agent.Command{Shell: "head -c 300000 /dev/zero"})
	}
	awaitIdle(t, p.client)
	if len(open()) == 0 {
		t.Fatal("the disk took the ends of the logs")
	}
	stop()
	if left := open(); len(left) > 0 {
		t.Errorf("open after the end: %q", left)
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	n := int64(0)
	growing := func() (int64, error) { n++; return n, nil }
	constant := func() (int64, error) { return 7, nil }
	broken := func() (int64, error) { return 0, errors.New("no such counter") }
	for name, tt := range map[string]struct {
		oom, pids func() (int64, error)
		shell     string
		want      sandbox.Cause
	}{
		"KilledWhileTheCounterMoved":    {growing, nil, "kill -9 $$", sandbox.CauseOOM},
		"ChildKilledWhileItMoved":       {growing, nil, "sh -c 'kill -9 $$'; exit $?", sandbox.CauseOOM},
		"KilledWhileItStoodStill":       {constant, constant, "kill -9 $$", sandbox.CauseKilled},
		"KilledWithABrokenCounter":      {broken, broken, "kill -9 $$", sandbox.CauseKilled},
		"FailedWhileItMoved":            {growing, nil, "exit 1", sandbox.CauseNone},
		"ForksRefused":                  {constant, growing, "exit 254", sandbox.CausePids},
		"ForksRefusedToOneThatWorked":   {growing, growing, "exit 0", sandbox.CauseNone},
		"EndedByASignalOfItsOwn":        {constant, constant, "kill -TERM $$", sandbox.CauseNone},
		"FailedWithoutAnythingHappened": {constant, constant, "exit 137", sandbox.CauseNone},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlain(t, func(o *server.Options) { o.OOMKills, o.PidsRefusals = tt.oom, tt.pids })
			o := runIt(t, p.client, agent.Command{Shell: tt.shell})
			if o.res.Cause != tt.want || (tt.want == "") != (o.res.CauseDetail == "") {
				t.Errorf("got %q (%s), want %q", o.res.Cause, o.res.CauseDetail, tt.want)
			}
		})
	}
}

func TestForkThatIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlain(t, func(o *server.Options) { o.Groups = refusing{unix.EAGAIN} })
	id := sandbox.NewProcessID()
	_, err := p.client.Start(t.Context(), agent.Command{ID: id, Shell: "true"})
	if !fault.Is(err, fault.Exhausted) {
		t.Errorf("got %v", err)
	}
	if _, err := p.client.Process(t.Context(), id); !fault.Is(err, fault.NotFound) {
		t.Errorf("something is left of it: %v", err)
	}
}

type refusing struct{ err error }

func (r refusing) New(string) (server.Group, error) { return nil, r.err }
