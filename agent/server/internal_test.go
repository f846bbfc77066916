// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
)

// sent is a connection on which all is sent already.
type sent struct {
	net.Conn
	r *bytes.Reader
}

func (s sent) Read(b []byte) (int, error) { return s.r.Read(b) }

// FuzzRequest reads calls that a client might send. None of them is carried out.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"op":"ping"}`, `{"op":"start","id":"a","start":{"shell":"true","env":{"A":"b"},"terminal":{"cols":1,"rows":1}}}`,
		`{"op":"write","path":"a/../b\uef80","mode":420}`,
	} {
		f.Add(wire.Append(wire.Append(wire.AppendHello(nil), wire.Call, []byte(text)), wire.End, nil))
	}
	s := New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: os.Stdin})
	f.Fuzz(func(t *testing.T, b []byte) {
		nc := sent{r: bytes.NewReader(b)}
		c := call.New(nc)
		req, err := c.Request()
		if err != nil {
			return
		}
		if err := s.checkStart(req.ID, req.Start); err == nil {
			if len(req.ID) > wire.MaxProcessID || len(req.Start.Shell) > wire.MaxShell || req.Start.MaxStdout > wire.MaxOutput || req.Start.Cwd[0] != '/' {
				t.Errorf("accepted: %+v", req.Start)
			}
			_, _, _ = clipCommand(req.Start)
			for range candidates("x", s.environment(view.Identity{}, req.Start)) {
				break
			}
		}
		for {
			if data, err := c.Data(); err != nil || data == nil {
				break
			}
		}
	})
}

// FuzzLog reads logs that a crash might leave.
func FuzzLog(f *testing.F) {
	at := time.Unix(1, 0)
	b := wire.AppendLog(nil, wire.LogStart, 0, at, []byte(`{"id":"a","state":"running"}`))
	first := int64(len(b))
	b = wire.AppendLog(b, wire.LogStdout, 1, at, []byte("out"))
	f.Add(bytes.Clone(b))
	exit := int64(len(b))
	b = wire.AppendLog(b, wire.LogExit, 1, at, []byte(`{"exit_code":3}`))
	f.Add(bytes.Clone(b))
	f.Add(wire.AppendLog(bytes.Clone(b), wire.LogSeal, 1, at, sealContent(exit)))
	f.Add(wire.AppendLog(bytes.Clone(b), wire.LogSeal, 1, at, sealContent(first)))
	f.Add(wire.AppendLog(b, wire.LogSeal, 1, at, sealContent(-1)))
	for _, floor := range []int64{0, 1, first, first + 32, exit, int64(len(b)), 1 << 40, -1} { // of a rolling log
		r := append(bytes.Clone(b[:first]), floorFrame(floor, at)...)
		r = wire.AppendLog(append(r, make([]byte, 100)...), wire.LogStdout, 7, at, []byte("out"))
		f.Add(bytes.Clone(r))
		f.Add(wire.AppendLog(r, wire.LogSeal, 7, at, sealContent(exit)))
	}
	dir, err := os.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	defer dir.Close()
	s := New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: dir})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir.Name(), "a.log"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := s.openLog("a")
		if err != nil {
			return
		}
		defer l.close()
		if l.rec.Result == nil || l.rec.State != wire.Exited || l.end > l.size || l.first > l.end {
			t.Errorf("%+v", l)
		}
		if off, err := seek(l.fd, l.first, l.end, 1); err == nil && (off < l.first || off > l.end) && !l.sealed {
			t.Errorf("seek gives %d of %d to %d", off, l.first, l.end)
		}
	})
}

// Of a command whose status nobody can tell it is never said that all went well.
func TestAnUnknownStatusIsNoSuccess(t *testing.T) {
	p := &process{srv: New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: os.Stdin}), log: &logFile{}, killCause: wire.CauseTimeout}
	res := p.resultLocked(unknownStatus, time.Now())
	if res.ExitCode != -1 || res.Cause != wire.CauseHost || res.CauseDetail == "" || res.Signal != "" {
		t.Errorf("got %+v", res)
	}
}
