// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering is a client whose agent takes everything and answers with b.
func answering(b []byte) *Client {
	return NewClient(func(context.Context) (net.Conn, error) { return &answer{r: bytes.NewReader(b)}, nil })
}

// answer is a connection that has its answers ready.
type answer struct {
	net.Conn
	r *bytes.Reader
}

func (a *answer) Read(b []byte) (int, error)       { return a.r.Read(b) }
func (a *answer) Write(b []byte) (int, error)      { return len(b), nil }
func (a *answer) Close() error                     { return nil }
func (a *answer) SetDeadline(time.Time) error      { return nil }
func (a *answer) SetReadDeadline(time.Time) error  { return nil }
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

const id = "abcdefgh12345678"

func frames(parts ...any) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		switch v := parts[i+1].(type) {
		case string:
			b = wire.Append(b, parts[i].(wire.Type), []byte(v))
		default:
			text, _ := json.Marshal(v)
			b = wire.Append(b, parts[i].(wire.Type), text)
		}
	}
	return b
}

var (
	recordOK = wire.Record{ID: id, State: wire.Running}
	started  = frames(wire.Reply, recordOK)
	fileOK   = wire.FileInfo{Name: "f", Path: "/f", Type: wire.File}
)

func follow(c *Client) (sandbox.Result, error) {
	ctx := context.Background()
	p, err := c.Start(ctx, Command{ID: id, Shell: "x", MaxStdout: 10})
	if err != nil {
		return sandbox.Result{}, err
	}
	defer p.Close()
	for {
		if _, err := p.Next(ctx); err != nil {
			if err == io.EOF {
				err = nil
			}
			return p.Result(), err
		}
	}
}

func out(seq int64, t wire.Type, data string) []byte {
	return wire.AppendLog(nil, t, seq, time.Now(), []byte(data))
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestClientDoesNotTrustTheAgent(t *testing.T) {
	end := frames(wire.Done, wire.Ending{})
	for name, b := range map[string][]byte{
		"NoAnswer":                nil,
		"CutReply":                started[:10],
		"NoReplyFirst":            end,
		"RecordOfAnother":         frames(wire.Reply, wire.Record{ID: "bbcdefgh12345678"}),
		"BrokenJSON":              frames(wire.Reply, "{"),
		"FrameTooLarge":           {byte(wire.Reply), 0xff, 0xff, 0xff},
		"NoEnd":                   started,
		"OutputThatRepeats":       join(started, out(1, wire.LogStdout, "a"), out(1, wire.LogStdout, "a"), end),
		"OutputOverTheCap":        join(started, out(1, wire.LogStdout, "aaaaaa"), out(2, wire.LogStdout, "aaaaaa"), end),
		"OutputWithAWrongSum":     join(started, frames(wire.LogStdout, strings.Repeat("x", 40)), end),
		"OutputTooShort":          join(started, frames(wire.LogStdout, "x"), end),
		"EmptyOutput":             join(started, out(1, wire.LogStdout, ""), end),
		"FileBytesAmongTheOutput": join(started, frames(wire.Data, "x"), end),
		"EndThatIsNone":           join(started, frames(wire.Done, "[]")),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := follow(answering(b)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("InputIsGivenUpInItsTimeOnly", func(t *testing.T) {
		for name, c := range map[string]struct {
			in    Input
			taken wire.Taken
		}{
			"MoreThanThereWas":    {Input{Data: []byte("abc"), Patience: time.Millisecond}, wire.Taken{Bytes: 4, Total: 4}},
			"LessWithoutPatience": {Input{Data: []byte("abc")}, wire.Taken{Bytes: 2, Total: 2}},
			"NoneWithoutPatience": {Input{Data: []byte("abc")}, wire.Taken{Closed: true}},
			"LessTooEarly":        {Input{Data: []byte("abc"), Patience: time.Hour}, wire.Taken{Bytes: 2, Total: 2}},
		} {
			if _, err := answering(frames(wire.Reply, c.taken)).Input(t.Context(), "abcdefgh12345678", c.in); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("ResultsAreCutToSense", func(t *testing.T) {
		res, err := follow(answering(join(started, frames(wire.Type(0x90), "from the future", wire.Done, wire.Ending{Result: wire.Result{
			ExitCode: 1 << 20, Signal: "\x1b[31m", Cause: "\x00", CauseDetail: "a\x1b\n" + strings.Repeat("x", 5000), DurationNS: -5, StdoutBytes: -1,
		}}))))
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != 255 || res.Signal != "" || res.Cause != sandbox.CauseKilled || res.Duration != 0 || res.StdoutBytes != 0 ||
			!strings.HasPrefix(res.CauseDetail, "a??x") || len(res.CauseDetail) > 520 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("ErrorsKeepTheirCodeIfItIsOne", func(t *testing.T) {
		for code, want := range map[string]fault.Code{
			"not_found": fault.NotFound, "unsupported": fault.Unsupported, "nonsense": fault.Internal, "unauthenticated": fault.Internal, "": fault.Internal,
		} {
			_, err := follow(answering(frames(wire.Failure, wire.Error{Code: code, Message: "m\x07" + strings.Repeat("y", 9000), Remedy: "r"})))
			if e := fault.As(err); e.Code != want || !strings.HasPrefix(e.Message, "m?y") || len(e.Message) > 5000 || e.Remedy != "r" {
				t.Errorf("%q: %v %d", code, e.Code, len(e.Message))
			}
		}
	})
	t.Run("FilesAreChecked", func(t *testing.T) {
		dir := wire.FileInfo{Name: "d", Path: "/d", Type: wire.Dir}
		for name, fi := range map[string]wire.FileInfo{
			"NoName": {Type: wire.File}, "Slash": {Name: "a/b", Type: wire.File}, "Dots": {Name: "..", Type: wire.File},
			"Type": {Name: "a", Type: "exe"}, "Long": {Name: strings.Repeat("x", 800), Type: wire.File},
		} {
			_, _, err := answering(frames(wire.Reply, dir, wire.Item, []wire.FileInfo{fi}, wire.Done, "")).List(t.Context(), "d", sandbox.ListFilesOptions{})
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		many := make([]wire.FileInfo, 11)
		for i := range many {
			many[i] = wire.FileInfo{Name: "x", Type: wire.File}
		}
		_, _, err := answering(frames(wire.Reply, dir, wire.Item, many, wire.Done, "")).List(t.Context(), "d", sandbox.ListFilesOptions{Limit: 10})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("more than asked for: %v", err)
		}
		_, r, err := answering(frames(wire.Reply, fileOK, wire.Data, "123456", wire.Done, "")).ReadFile(t.Context(), "f", sandbox.ReadFileOptions{Length: 5})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.ReadAll(r); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a range that is too long: %v", err)
		}
		_, r, err = answering(frames(wire.Reply, fileOK, wire.Data, "123")).ReadFile(t.Context(), "f", sandbox.ReadFileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if b, err := io.ReadAll(r); string(b) != "123" || !fault.Is(err, fault.Unavailable) {
			t.Errorf("a file that is cut off: %q %v", b, err)
		}
	})
}

func TestClientPassesOnWhyItCannotDial(t *testing.T) {
	down := fault.New(fault.State, "the sandbox is stopped")
	for _, tt := range []struct {
		err  error
		want fault.Code
	}{{down, fault.State}, {errors.New("refused"), fault.Unavailable}} {
		c := NewClient(func(context.Context) (net.Conn, error) { return nil, tt.err })
		if _, err := c.Ping(t.Context()); !fault.Is(err, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%v: got %v", tt.err, err)
		}
	}
}

func TestClientGivesUpWithItsContext(t *testing.T) {
	mine, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // it reads and never answers
	ctx, cancel := context.WithCancel(t.Context())
	c := NewClient(func(context.Context) (net.Conn, error) { cancel(); return mine, nil })
	if _, err := c.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// FuzzAnswer feeds every kind of call with what an agent might answer.
func FuzzAnswer(f *testing.F) {
	f.Add(join(started, out(1, wire.LogStdout, "a"), out(2, wire.LogStderr, "b"), frames(wire.LogExit, "", wire.Done, wire.Ending{})))
	f.Add(frames(wire.Reply, fileOK, wire.Data, "bytes", wire.Done, ""))
	f.Add(frames(wire.Reply, wire.FileInfo{Name: "d", Path: "/d", Type: wire.Dir}, wire.Item, []wire.FileInfo{fileOK}, wire.Done, wire.Listing{Truncated: true}))
	f.Add(frames(wire.Failure, wire.Error{Code: "invalid", Message: "no", Fields: []fault.Field{{Name: "a", Message: "b"}}}))
	f.Add(frames(wire.Reply, "", wire.Item, recordOK, wire.Done, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := t.Context()
		res, _ := follow(answering(b))
		if res.ExitCode < -1 || res.ExitCode > 255 || strings.ContainsAny(res.Signal+res.CauseDetail, "\x00\x1b\n") {
			t.Errorf("%+v", res)
		}
		c := answering(b)
		_, _ = c.Ping(ctx)
		_, _ = answering(b).Process(ctx, id)
		_, _ = answering(b).Processes(ctx)
		_, _ = answering(b).Stat(ctx, "f", "")
		list, _, _ := answering(b).List(ctx, "d", sandbox.ListFilesOptions{Limit: 3})
		if len(list) > 3 {
			t.Errorf("%d entries", len(list))
		}
		for _, fi := range list {
			if strings.ContainsAny(fi.Name, "/\x00") || !strings.HasPrefix(fi.Path, "/") {
				t.Errorf("%+v", fi)
			}
		}
		if _, r, err := answering(b).ReadFile(ctx, "f", sandbox.ReadFileOptions{Length: 4}); err == nil {
			if got, _ := io.ReadAll(r); len(got) > 4 {
				t.Errorf("%d bytes", len(got))
			}
			_ = r.Close()
		}
		if _, _, err := answering(b).WriteFile(ctx, "f", strings.NewReader("x"), sandbox.WriteFileOptions{}); err != nil && fault.Of(err) == fault.Unauthenticated {
			t.Error(err)
		}
	})
}

// An agent of an earlier build lists all processes, whatever it is asked for.
func TestRunningLeavesOutWhatHasEnded(t *testing.T) {
	ended := wire.Record{ID: "ended678abcdefgh", State: wire.Exited, Result: &wire.Result{}}
	c := answering(frames(wire.Reply, struct{}{}, wire.Item, ended, wire.Item, recordOK, wire.Done, ""))
	got, err := c.Running(context.Background())
	if err != nil || len(got) != 1 || got[0].ID != id {
		t.Errorf("got %+v, %v, want the one that runs", got, err)
	}
}

// An agent's clock may be another than ours: what is younger is said by its own.
func TestWhatIsYoungerIsSaidByTheAgentsClock(t *testing.T) {
	const minute = int64(time.Minute / time.Millisecond)
	for name, tt := range map[string]struct {
		clock int64
		right func(wire.Request) bool
	}{
		"OfAnotherKernel": {90 * minute, func(r wire.Request) bool {
			return r.SinceMS == 0 && r.SinceClockMS > 88*minute && r.SinceClockMS <= 89*minute
		}},
		"OfOneThatRunsForLess": {minute / 2, func(r wire.Request) bool { return r.SinceMS == 0 && r.SinceClockMS == 1 }},
		"OfAnEarlierBuild":     {0, func(r wire.Request) bool { return r.SinceMS > 0 && r.SinceClockMS == 0 && r.YoungerMS >= minute }},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan wire.Request, 1)
			c := NewClient(func(context.Context) (net.Conn, error) {
				mine, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					var req wire.Request
					r := wire.NewReader(theirs)
					for {
						f, p, err := r.Next()
						if err != nil {
							return
						}
						if f == wire.Call && wire.Decode(p, &req) == nil {
							break
						}
					}
					if req.Op == wire.OpSignal {
						got <- req
					}
					_, _ = theirs.Write(frames(wire.Reply, wire.Info{ClockMS: tt.clock}, wire.Done, struct{}{}))
				}()
				return mine, nil
			})
			if err := c.SignalYounger(t.Context(), id, 9, time.Now().Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			if req := <-got; !tt.right(req) || req.YoungerMS < minute {
				t.Errorf("%+v", req)
			}
		})
	}
}
