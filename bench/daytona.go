// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// Daytona is what the wire of Daytona's clients costs. Both of a pair are the same call, by /v1 and by that wire, on warm
// connections and in turn.
type Daytona struct {
	ExecV1 *Figures `json:"exec_v1"` // of `true`
	Exec   *Figures `json:"exec"`
	GetV1  *Figures `json:"get_v1"`
	Get    *Figures `json:"get"`
	First  *Figures `json:"first_command"` // a create and its first command, without a pool
	Python *Figures `json:"python"`        // the same by Daytona's SDK for Python, which waits for nothing; nil: there is none

	Sockets   int     `json:"sockets"` // event sockets that are open
	SocketsMB float64 `json:"sockets_mb"`
}

// Coat is what a wire costs beside /v1: each pair is the same call by both, on warm connections and in turn.
type Coat struct {
	GetV1   *Figures `json:"get_v1"`
	Get     *Figures `json:"get"`
	ExecV1  *Figures `json:"exec_v1"` // of `true`
	Exec    *Figures `json:"exec"`
	WriteV1 *Figures `json:"write_v1"` // of a file of 1 KiB
	Write   *Figures `json:"write"`
	ReadV1  *Figures `json:"read_v1"`
	Read    *Figures `json:"read"`
}

// request is one that a client makes.
type request struct {
	method, path string
	in           any // nil: none. Bytes are sent as they are, all else as JSON
}

// coats measures the wires of Orkestr's SDK and of the MCP Gateway's on a server.
func (s *server) coats(ctx context.Context, o *ours, n int) (orkestr, gateway *Coat, err error) {
	c := &jsonCaller{http: &http.Client{Transport: new(http.Transport)}, url: s.url, token: s.token}
	defer c.http.CloseIdleConnections()
	data := bytes.Repeat([]byte("x"), 1<<10)
	command := map[string]string{"command": "true"}
	err = o.with(ctx, v1.CreateSandbox{}, func(ref string) (err error) {
		plain, theirs, other := "/v1/sandboxes/"+ref, "/orkestr/v1/sandboxes/"+ref, "/gateway/api/v1/sandboxes/"+ref
		raw := request{"PUT", plain + "/files/f", data}
		if orkestr, err = c.coat(ctx, n, [4][2]request{
			{{"GET", plain, nil}, {"GET", theirs, nil}},
			{{"POST", plain + "/exec", command}, {"POST", theirs + "/exec", command}},
			{raw, {"POST", theirs + "/files", map[string]any{"path": "f", "content": data}}},
			{{"GET", plain + "/files/f", nil}, {"GET", theirs + "/files?path=f", nil}},
		}); err != nil {
			return err
		}
		gateway, err = c.coat(ctx, n, [4][2]request{
			{{"GET", plain, nil}, {"GET", other, nil}},
			{{"POST", plain + "/exec", command}, {"POST", other + "/exec", command}},
			{raw, {"PUT", other + "/files/f", data}},
			{{"GET", plain + "/files/f", nil}, {"GET", other + "/files/f", nil}},
		})
		return err
	})
	return orkestr, gateway, err
}

// coat measures the pairs of a wire: a look, a command, a file written and read.
func (c *jsonCaller) coat(ctx context.Context, n int, pairs [4][2]request) (*Coat, error) {
	out := new(Coat)
	for i, to := range [4][2]**Figures{{&out.GetV1, &out.Get}, {&out.ExecV1, &out.Exec}, {&out.WriteV1, &out.Write}, {&out.ReadV1, &out.Read}} {
		do := func(r request) func() error {
			return func() error { return c.call(ctx, r.method, r.path, r.in, nil) }
		}
		var err error
		if *to[0], *to[1], err = pair(ctx, n, do(pairs[i][0]), do(pairs[i][1])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// jsonCaller sends JSON, or bytes, with a server's token.
type jsonCaller struct {
	http  *http.Client
	url   string
	token string
}

// call sends in, where it is not nil, and reads the answer into out, where that is not nil.
func (c *jsonCaller) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	media := "application/json"
	if raw, ok := in.([]byte); ok {
		body, media = bytes.NewReader(raw), "application/octet-stream"
	} else if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if in != nil {
		r.Header.Set("Content-Type", media)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode > 299 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// daytona measures on a server. python is a Python with Daytona's SDK; "": without it.
func (s *server) daytona(ctx context.Context, o *ours, python string, n int) (_ *Daytona, err error) {
	c, d := &jsonCaller{http: &http.Client{Transport: new(http.Transport)}, url: s.url, token: s.token}, new(Daytona)
	defer c.http.CloseIdleConnections()
	err = o.with(ctx, v1.CreateSandbox{}, func(ref string) (err error) {
		command := map[string]string{"command": "true"}
		if d.ExecV1, d.Exec, err = pair(ctx, n,
			func() error { return c.call(ctx, "POST", "/v1/sandboxes/"+ref+"/exec", command, nil) },
			func() error { return c.call(ctx, "POST", "/daytona/toolbox/"+ref+"/process/execute", command, nil) }); err != nil {
			return err
		}
		d.GetV1, d.Get, err = pair(ctx, n,
			func() error { return c.call(ctx, "GET", "/v1/sandboxes/"+ref, nil, nil) },
			func() error { return c.call(ctx, "GET", "/daytona/sandbox/"+ref, nil, nil) })
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.First, err = c.firsts(ctx, n); err != nil {
		return nil, err
	}
	if python != "" {
		if d.Python, err = s.sdk(ctx, python, n); err != nil {
			return nil, err
		}
	}
	d.Sockets = streams
	d.SocketsMB, err = s.sockets(ctx, streams)
	return d, err
}

// firsts times creates with their first commands. Deleting is not timed.
func (c *jsonCaller) firsts(ctx context.Context, n int) (*Figures, error) {
	var all series
	for round := range n + warmUp {
		var box struct{ ID string }
		began := time.Now()
		err := c.call(ctx, "POST", "/daytona/sandbox", struct{}{}, &box)
		if err == nil {
			err = c.call(ctx, "POST", "/daytona/toolbox/"+box.ID+"/process/execute", map[string]string{"command": "true"}, nil)
		}
		took := time.Since(began)
		if err == nil {
			err = c.call(ctx, "DELETE", "/daytona/sandbox/"+box.ID, nil, nil)
		}
		if err != nil {
			return nil, err
		}
		if round >= warmUp {
			all.add(took, nil)
		}
	}
	return all.figures(), nil
}

// sdkProgram prints how many seconds each of so many creates took with its first command.
const sdkProgram = `
import sys, time
from daytona import Daytona
d = Daytona()
for _ in range(int(sys.argv[1])):
    began = time.perf_counter()
    s = d.create()
    s.process.exec("true")
    print(time.perf_counter() - began)
    s.delete()
`

// sdk is firsts by Daytona's SDK for Python.
func (s *server) sdk(ctx context.Context, python string, n int) (*Figures, error) {
	cmd := exec.CommandContext(ctx, python, "-c", sdkProgram, strconv.Itoa(n+warmUp))
	cmd.Env = append(os.Environ(), "DAYTONA_API_URL="+s.url+"/daytona", "DAYTONA_API_KEY="+s.token)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the SDK of Daytona: %w: %s", err, said.Bytes())
	}
	var all series
	for i, line := range bytes.Fields(out) {
		seconds, err := strconv.ParseFloat(string(line), 64)
		if err != nil {
			return nil, fmt.Errorf("the SDK of Daytona printed %q", line)
		}
		if i >= warmUp {
			all.add(time.Duration(seconds*float64(time.Second)), nil)
		}
	}
	return all.figures(), nil
}

// sockets returns by how much, in MB, the resident set of the server, which it starts anew, grows with so many event sockets.
func (s *server) sockets(ctx context.Context, n int) (_ float64, err error) {
	if err := s.again(ctx); err != nil {
		return 0, err
	}
	before, err := leaktest.RSS(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	closeAll, err := s.openSockets(ctx, n)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return 0, err
	}
	after, err := leaktest.RSS(s.cmd.Process.Pid)
	return float64(after-before) / 1024 / 1000, err
}

// openSockets opens so many event sockets, which closeAll closes, also after an error.
func (s *server) openSockets(ctx context.Context, n int) (closeAll func() error, _ error) {
	open := make([]*websocket.Conn, 0, n)
	closeAll = func() (err error) {
		for _, c := range open {
			err = errors.Join(err, c.CloseNow())
		}
		return err
	}
	for range n {
		c, _, err := websocket.Dial(ctx, s.url+"/daytona/socket.io/?EIO=4&transport=websocket", nil)
		if err != nil {
			return closeAll, err
		}
		open = append(open, c)
		for _, say := range []string{"", `40{"token":"` + s.token + `"}`} {
			if say != "" {
				err = c.Write(ctx, websocket.MessageText, []byte(say))
			}
			var text []byte
			if err == nil {
				_, text, err = c.Read(ctx)
			}
			if err != nil {
				return closeAll, err
			}
			if !bytes.HasPrefix(text, []byte("0{")) && !bytes.HasPrefix(text, []byte("40{")) {
				return closeAll, fmt.Errorf("an event socket begins with %s", text)
			}
		}
	}
	return closeAll, nil
}

func (d *Daytona) rows(row func(name string, f *Figures)) {
	if d == nil {
		return
	}
	row("true by /v1", d.ExecV1)
	row("the same by Daytona's wire", d.Exec)
	row("a look by /v1", d.GetV1)
	row("the same by Daytona's wire", d.Get)
	row("create → first command by Daytona's wire", d.First)
	row("the same by its SDK for Python", d.Python)
}

func (c *Coat) rows(name string, row func(name string, f *Figures)) {
	if c == nil {
		return
	}
	row("a look by /v1", c.GetV1)
	row("the same by "+name, c.Get)
	row("true by /v1", c.ExecV1)
	row("the same by "+name, c.Exec)
	row("1 KiB written by /v1", c.WriteV1)
	row("the same by "+name, c.Write)
	row("1 KiB read by /v1", c.ReadV1)
	row("the same by "+name, c.Read)
}

func (c *Coat) line(name string, say func(format string, args ...any)) {
	if c == nil {
		return
	}
	say("%s costs a look %.2f ms at p50, a command %.2f ms, a write %.2f ms, a read %.2f ms", name, c.Get.P50-c.GetV1.P50, c.Exec.P50-c.ExecV1.P50, c.Write.P50-c.WriteV1.P50, c.Read.P50-c.ReadV1.P50)
}

func (d *Daytona) lines(say func(format string, args ...any)) {
	if d == nil {
		return
	}
	say("Daytona's wire costs a command %.2f ms at p50, a look %.2f ms; %d event sockets %.1f MB", d.Exec.P50-d.ExecV1.P50, d.Get.P50-d.GetV1.P50, d.Sockets, d.SocketsMB)
}
